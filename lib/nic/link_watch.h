// Whether an interface is of use, as the kernel says it: it is up, has a carrier and still has our
// address. A driver whose ports stand on an interface asks this for their link events.
//
// The kernel tells of changes over a socket of our own, which is looked at once in so many polls:
// to look costs a system call, and most often there is nothing.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "nic/netlink.h"
#include "nic/port.h"

namespace pullman::nic {

class LinkWatch {
 public:
  // If the link is not up now, that is the first event.
  LinkWatch(const std::string& interface, const Address& own);

  // kLinkDown and kLinkUp in turn, as far as there is room. A link that was down since the last
  // poll and is up again is told as both.
  std::size_t poll(std::span<PortEvent> out) {
    if (++polls_ < kRest) [[likely]]
      return 0;
    return look(out);
  }

  // The next poll looks: there is reason to think that something has happened.
  void hurry() { polls_ = kRest; }

  // Becomes readable when poll() has something, within the next kRest calls; -1 if the system gave
  // none: then there are no events.
  int fd() const { return kernel_.fd(); }

 private:
  // An idle turn of the loop polls twice and takes 0.4 us; a look takes 0.15.
  static constexpr std::uint32_t kRest = 32;

  std::size_t look(std::span<PortEvent> out);
  bool drain();
  void read_state();
  void handle(const nlmsghdr& message);
  void handle_link(const nlmsghdr& message);
  void handle_address(const nlmsghdr& message);
  bool is_ours(const nlmsghdr& message, int index) const;
  void note();
  bool up() const { return link_ && address_; }

  std::string interface_;
  Address own_;
  Netlink kernel_;
  int index_ = 0;            // of the interface; one that comes back may have another
  bool link_ = true;         // up, with a carrier
  bool address_ = true;      // ours is there, and may be used
  bool was_down_ = false;    // since the last event
  bool told_up_ = true;      // by the last event
  bool read_again_ = false;  // something was missed
  std::uint32_t polls_ = 0;  // since the last look
};

}  // namespace pullman::nic
