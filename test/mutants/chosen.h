// Which of the faults that were compiled in is in effect: the one whose number PULLMAN_MUTANT has.
// tools/mutants includes this into its copy of the sources; nothing else does.
//
// PULLMAN_MUTANTS_REACHED names a file of kMost bytes. That of each fault which a process would
// have had an effect at is set to 1, also by processes that are killed.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <type_traits>

namespace pullman::mutants {

inline constexpr int kMost = 4096;

inline std::uint8_t* map_reached() {
  const char* name = std::getenv("PULLMAN_MUTANTS_REACHED");
  const int file = name != nullptr ? open(name, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) return nullptr;
  void* bytes = mmap(nullptr, kMost, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return bytes != MAP_FAILED ? static_cast<std::uint8_t*>(bytes) : nullptr;
}

inline bool is_chosen_now(int number) {
  static const char* const said = std::getenv("PULLMAN_MUTANT");
  static const int chosen = said != nullptr ? std::atoi(said) : -1;
  static std::uint8_t* const reached = map_reached();
  if (reached != nullptr) reached[number] = 1;
  return number == chosen;
}

// What the compiler evaluates is as it was.
constexpr bool is_chosen(int number) {
  return !std::is_constant_evaluated() && is_chosen_now(number);
}

}  // namespace pullman::mutants
