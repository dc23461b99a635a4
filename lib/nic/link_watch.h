// Whether an interface is of use, as the kernel says it: it is up, has a carrier and still has our
// address. A driver whose ports stand on an interface asks this for their link events.
//
// The kernel tells of changes over a socket of our own.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "nic/netlink.h"
#include "nic/port.h"

namespace pullman::nic {

class LinkWatch {
 public:
  // If the link is not up now, that is the first event.
  LinkWatch(const std::string& interface, const Address& own);

  // kLinkDown or kAddressGone, and kLinkUp, in turn, as far as there is room. A link that was down
  // since the last poll and is up again is told as both. A system call, of 0.15 us when there is
  // nothing.
  std::size_t poll(std::span<PortEvent> out);

  // Since this was asked last, poll() has heard of an address that came or went, of whatever
  // interface, or may have missed it.
  bool takes_address_news() { return std::exchange(address_news_, false); }

  // Becomes readable when poll() has something; -1 if the system gave none: then there are no
  // events.
  int fd() const { return kernel_.fd(); }

 private:
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
  int index_ = 0;             // of the interface; one that comes back may have another
  bool link_ = true;          // up, with a carrier
  bool address_ = true;       // ours is there, and may be used
  bool was_down_ = false;     // since the last event
  bool told_up_ = true;       // by the last event
  bool read_again_ = false;   // something was missed
  bool address_news_ = true;  // before it listened there may have been any
};

}  // namespace pullman::nic
