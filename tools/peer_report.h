// pullman-info --peer: the rails to a process that runs, and how they do.
#pragma once

#include <chrono>
#include <string>

struct PeerQuestion {
  std::string address;                   // HOST:PORT
  std::chrono::milliseconds patience{};  // for an answer, and then for each rail's
  bool json = false;
};

// Connects, looks, prints and leaves again; no message is sent. Returns the exit code: 0 if all
// rails are up. Throws pullman::Error.
int report_peer(const PeerQuestion& question);
