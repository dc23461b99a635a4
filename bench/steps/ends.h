// The two ends of a ping-pong over the library, each a process, for somebody who watches one of
// them step by step.
#pragma once

#include <cstddef>
#include <string>

namespace steps {

inline constexpr int kUnwatched = 2000;  // rounds until both ends know each other

// The end that is watched: after kUnwatched rounds its parent traces it (PTRACE_TRACEME), and it
// stops (SIGSTOP); then answers the rest.
struct Answer {
  int address_out;  // a pipe: writes there where it is
  int rounds;       // watched ones
  std::size_t bytes;

  void run() const;
};

// Each watched round begins when a byte comes by `go`.
struct Ask {
  std::string address;
  int go;
  int rounds;
  std::size_t bytes;

  void run() const;
};

}  // namespace steps
