#include "shm/process.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

namespace pullman::shm {

ProcessName this_process() {
  return process_of(getpid());
}

std::uint64_t process_namespace() {
  struct stat facts {};
  return stat("/proc/self/ns/pid", &facts) == 0 ? facts.st_ino : 0;
}

// The name of the program, which stands in parentheses, may itself have any character.
ProcessName process_of(pid_t id) {
  std::ifstream file("/proc/" + std::to_string(id) + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t end = line.rfind(')');
  if (end == std::string::npos) return {.id = id};
  std::istringstream rest(line.substr(end + 1));
  constexpr int kStarted = 22;
  constexpr int kState = 3;
  std::string field;
  ProcessName name{.id = id};
  for (int i = kState; i <= kStarted && rest >> field; ++i) {
    if (i == kState && (field == "Z" || field == "X")) return name;
    if (i == kStarted) name.started = std::stoull(field);
  }
  return name;
}

}  // namespace pullman::shm
