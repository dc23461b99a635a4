// Reads the memory of another process of the same user, without that process taking part
// (process_vm_readv(2)).
//
// Whether the kernel allows it depends on more than a process can find out: Yama, capabilities,
// namespaces, seccomp. So it is tried: each process has a word of random bits, and tells where it
// is and what its bits are; one that reads those bits there can read the rest, and has the right
// process.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace pullman::shm {

// A word of a process, told to another one.
struct Word {
  std::uint64_t address = 0;
  std::uint64_t bits = 0;
};
// Returns this process's word, which is the same for as long as the process runs.
Word own_word();

// Copies the bytes at `address` in that process. Returns false if that is not possible, or not for
// all of them; some may have been copied then.
bool read_memory(pid_t process, std::uint64_t address, std::span<std::byte> into);

// Returns whether the memory of that process, which has told its word, can be read.
bool can_read(pid_t process, const Word& told);

}  // namespace pullman::shm
