// The files that a trace is written to (Config::trace): what they are called, and how they are
// written.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/time.h"
#include "nic/trace/ring.h"

namespace pullman {

// What distinguishes one context's files from another's.
struct TraceOwner {
  std::string host;
  int process = 0;
  unsigned context = 1;  // of that process, from 1
};

// Returns the file's path: %h becomes the host and %p the process ("17", of a further context
// "17-2"), which stands before the extension if there is no %p. `cause` stands there, too, unless
// it is empty: "t.pcapng" becomes "t.17.failure.pcapng".
std::filesystem::path trace_path(std::string_view wanted, const TraceOwner& owner,
                                 std::string_view cause);

// Writes what the ring has to a file of that name, which only its user may read. One that is there
// already is replaced when the new one is complete. `behind_1970` is the time since 1970 at the
// origin of the ring's clock. Throws std::system_error.
void write_trace(const nic::trace::Ring& ring, const std::filesystem::path& path,
                 std::string_view comment, Duration behind_1970);

}  // namespace pullman
