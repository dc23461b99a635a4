// Marks what a child of fork() has inherited: both processes have the same sockets, sequence
// numbers and keys then, which one of them only may use.
#pragma once

#include <boost/intrusive/list.hpp>
#include <cstdint>

namespace pullman {

// In each child of fork() it sets these bits of a byte. Threads: may be made and destroyed by any.
class ForkMark : public boost::intrusive::list_base_hook<> {
 public:
  ForkMark(std::uint8_t& flags, std::uint8_t bits);
  ~ForkMark();
  ForkMark(const ForkMark&) = delete;
  ForkMark& operator=(const ForkMark&) = delete;

  void set() { flags_ |= bits_; }

 private:
  std::uint8_t& flags_;
  const std::uint8_t bits_;
};

}  // namespace pullman
