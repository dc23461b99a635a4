// Classifies the errors that devices and the kernel report, for all drivers alike: to count them,
// and to tell where to look.
//
// Not an error here is a packet that is too long, because path MTU is learned by it
// (PortCounters::too_long), and a packet that a receiver drops for its length.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace pullman::nic {

enum class ErrorClass : std::uint8_t {
  kTimeout,  // no answer within the device's or the kernel's time limit
  kFlushed,  // returned undone: its queue, endpoint or connection was ended on this host
  kDevice,   // the device, its driver or its link failed, or the bytes were damaged on the way
  kRemote,   // the remote host, or the network on the way, refuses
  kLocal,    // this host refuses: no route, no memory, a filter, or an invalid call
};
inline constexpr std::size_t kErrorClasses = 5;

const char* name(ErrorClass kind);

// Classifies an error number of the C library; libfabric's numbers begin with the same ones.
ErrorClass class_of(int error);

// Counts the errors of each class, and keeps the last error number.
class ErrorCounts {
 public:
  struct Count {
    std::uint64_t times = 0;
    int last = 0;
  };

  void note(ErrorClass kind, int error) {
    Count& count = counts_[static_cast<std::size_t>(kind)];
    ++count.times;
    count.last = error;
    seen_ |= bit(kind);
  }
  const Count& of(ErrorClass kind) const { return counts_[static_cast<std::size_t>(kind)]; }
  // Returns a bit for each class that has occurred.
  std::uint8_t seen() const { return seen_; }
  static constexpr std::uint8_t bit(ErrorClass kind) {
    return static_cast<std::uint8_t>(1u << static_cast<unsigned>(kind));
  }

 private:
  std::array<Count, kErrorClasses> counts_{};
  std::uint8_t seen_ = 0;
};

}  // namespace pullman::nic
