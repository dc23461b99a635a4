// pullman-info --peer: the rails to a process that runs, and how they do.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "pullman/rails.h"

struct PeerQuestion {
  std::string address;                   // HOST:PORT
  std::chrono::milliseconds patience{};  // for an answer, and then for each rail's
  bool json = false;
};

// Connects, looks, prints and leaves again; no message is sent. Returns the rails in `seen`, and
// the exit code: 0 if all rails are up. Throws pullman::Error.
int report_peer(const PeerQuestion& question, std::vector<pullman::RailView>& seen);
