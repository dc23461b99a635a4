// Decides, by how packets arrive, whether to receive them together (UDP_GRO).
//
// That needs recvmsg() and its control message, which for a single packet costs 50 to 100 ns more
// than recv(), and for an empty socket 50 (of 145) more. So a socket begins without, switches over
// when several packets come at once, and back when none have for a while.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace pullman::nic::udp {

class Coalescing {
 public:
  // `possible`: the kernel can do it, and it is allowed.
  Coalescing(int socket, bool possible) : socket_(socket), possible_(possible) {}

  bool on() const { return on_; }

  // A receive() brought that many packets, the last one of `bytes`. A caller that asks for one at a
  // time sees packets that came together as two, one right after the other: if the first is long
  // they are taken for that. The second may be short, as the last of a burst often is.
  void note(std::size_t packets, std::size_t bytes) {
    const bool was_long = std::exchange(long_one_, packets != 0 && bytes >= kLong);
    if (packets >= kSeveral || (was_long && packets != 0)) [[unlikely]] {
      quiet_ = 0;
      if (!on_ && possible_) switch_on();
    } else if (on_ && ++quiet_ >= kQuiet) [[unlikely]] {
      try_switch_off();
    }
  }

 private:
  static constexpr std::size_t kSeveral = 2;
  static constexpr std::size_t kLong = 512;      // bytes
  static constexpr std::uint32_t kQuiet = 1024;  // receives in a row without several packets

  void switch_on();
  void try_switch_off();

  int socket_;
  bool possible_;
  bool on_ = false;
  bool long_one_ = false;  // the last receive brought a long one
  std::uint32_t quiet_ = 0;
};

}  // namespace pullman::nic::udp
