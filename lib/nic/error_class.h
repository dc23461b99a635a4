// What kinds of errors devices and the kernel tell of, whatever the driver: enough to say where to
// look, and to count.
//
// A packet that is too long is no error here: that is how a path's size is learned
// (PortCounters::too_long), and neither is one that a receiver has to drop for its length.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace pullman::nic {

enum class ErrorClass : std::uint8_t {
  kTimeout,  // nobody answered in the time that the device or the kernel gives
  kFlushed,  // handed back undone: its queue, endpoint or connection was ended on this host
  kDevice,   // the device, its driver or its link failed, or the bytes were damaged on the way
  kRemote,   // the far host, or the network on the way there, refuses
  kLocal,    // this host refuses: no route, no room, a filter, or a call that it does not take
};
inline constexpr std::size_t kErrorClasses = 5;

const char* name(ErrorClass kind);

// Of an error number of the C library; libfabric's begin with the same.
ErrorClass class_of(int error);

// How many of each class, and the error number of the last.
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
  // A bit for each class of which there was one.
  std::uint8_t seen() const { return seen_; }
  static constexpr std::uint8_t bit(ErrorClass kind) {
    return static_cast<std::uint8_t>(1u << static_cast<unsigned>(kind));
  }

 private:
  std::array<Count, kErrorClasses> counts_{};
  std::uint8_t seen_ = 0;
};

}  // namespace pullman::nic
