#include "shm/process_memory.h"

#include <sys/random.h>
#include <sys/uio.h>

#include <array>
#include <bit>

namespace pullman::shm {
namespace {

std::uint64_t random_bits() {
  std::uint64_t bits = 0;
  if (getrandom(&bits, sizeof bits, 0) != sizeof bits) return 0;  // a word that nobody believes
  return bits;
}

}  // namespace

Word own_word() {
  static const std::uint64_t bits = random_bits();
  return {.address = reinterpret_cast<std::uintptr_t>(&bits), .bits = bits};
}

bool read_memory(pid_t process, std::uint64_t address, std::span<std::byte> into) {
  const iovec here{.iov_base = into.data(), .iov_len = into.size()};
  const iovec there{.iov_base = reinterpret_cast<void*>(address), .iov_len = into.size()};
  return process_vm_readv(process, &here, 1, &there, 1, 0) == static_cast<ssize_t>(into.size());
}

bool can_read(pid_t process, const Word& told) {
  std::array<std::byte, sizeof told.bits> read{};
  if (told.bits == 0 || !read_memory(process, told.address, read)) return false;
  return std::bit_cast<std::uint64_t>(read) == told.bits;
}

}  // namespace pullman::shm
