// pullman-info --check: which packets get through to processes that run, over every rail.
#pragma once

#include <chrono>
#include <string>
#include <vector>

struct CheckQuestion {
  std::vector<std::string> addresses;    // HOST:PORT of each
  std::chrono::milliseconds patience{};  // for all of it
  bool json = false;
  std::string map;  // a file for the whole job's rails; empty: none
  std::string svg;  // a file for a picture of them; empty: none
};

// Connects to all of them, checks all rails at a time, prints and leaves again; no message is sent.
// Returns the exit code: 0 if all are reached and all rails are fine. Throws pullman::Error, and
// std::runtime_error if the map cannot be written.
int report_check(const CheckQuestion& question);
