// Whether an interface is usable, as the kernel reports it: it is up, has a carrier and still has
// our address. Drivers whose ports use a kernel interface get their link events here.
//
// The kernel reports changes over a socket of this object.
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
  // If the link is not up now, the first event tells it.
  LinkWatch(const std::string& interface, const Address& own);

  // Writes kLinkDown or kAddressGone, and kLinkUp, in turn, as far as there is room. A link that
  // went down and up since the last poll is reported as both. A system call, of 0.15 us when there
  // is nothing.
  std::size_t poll(std::span<PortEvent> out);

  // Whether, since the last call, poll() has heard of an address that came or went, on any
  // interface, or may have missed it.
  bool takes_address_news() { return std::exchange(address_news_, false); }

  // Becomes readable when poll() has something; -1 if the system gave no descriptor: then there are
  // no events.
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
  int index_ = 0;             // of the interface; changes if it is removed and added again
  bool link_ = true;          // up, with a carrier
  bool address_ = true;       // ours exists and may be used
  bool was_down_ = false;     // since the last event
  bool told_up_ = true;       // what the last event told
  bool read_again_ = false;   // an event was missed
  bool address_news_ = true;  // true at first: changes before it listened are unknown
};

}  // namespace pullman::nic
