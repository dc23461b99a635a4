// Names a process for as long as the host runs: process ids are used again, but not together with
// the time the process was started (proc(5), stat, field 22).
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace pullman::shm {

struct ProcessName {
  pid_t id = 0;
  std::uint64_t started = 0;  // clock ticks after the host was; 0 if the system does not tell
  bool operator==(const ProcessName&) const = default;
};

ProcessName this_process();
// Names the set of process ids that this process sees: a container has its own.
std::uint64_t process_namespace();
// Returns the name of the process that has that id now. One that has ended and was not waited for
// counts as gone.
ProcessName process_of(pid_t id);
// Returns false, too, if the system does not tell: for want of descriptors, say, or of /proc.
bool has_ended(const ProcessName& name);

}  // namespace pullman::shm
