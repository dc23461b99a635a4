// A NIC in memory: ports of one process that put datagrams into each other's mailboxes.
//
// For benchmarks: a packet costs one copy in, none out, and nothing is lost unless a mailbox is
// full. Resolving is answered at the next poll. Knows nothing of time, links or engines.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "nic/port.h"

namespace pullman::bench {

// Where a port's datagrams wait. Outlives the port: what comes before it is opened waits, too.
class Mailbox {
 public:
  static constexpr std::size_t kCapacity = 512;  // packets unread or lent

  explicit Mailbox(std::size_t packet_bytes) : packet_bytes_(packet_bytes) {}

  bool put(const nic::Outgoing& packet);
  std::size_t take(std::span<nic::Incoming> batch);
  void give_back(std::size_t count) { returned_ += count; }
  // Forgets what is unread, and its memory.
  void clear();

  std::size_t packet_bytes() const { return packet_bytes_; }
  bool empty() const { return read_ == written_; }

 private:
  struct Letter {
    std::unique_ptr<std::byte[]> bytes;  // allocated when first used
    std::size_t length = 0;
  };

  std::size_t packet_bytes_;
  std::vector<Letter> letters_;
  std::uint64_t written_ = 0;  // ever; letters live at their number modulo kCapacity
  std::uint64_t read_ = 0;
  std::uint64_t returned_ = 0;
};

// All mailboxes of a run. Hosts are numbered from 0.
class MemoryNetwork {
 public:
  enum class Channel : std::uint8_t { kCommand = 0, kData = 1 };

  explicit MemoryNetwork(std::size_t hosts);

  std::unique_ptr<nic::Port> open(std::size_t host, Channel channel);
  Mailbox& mailbox(nic::Destination at) { return mailboxes_[at]; }
  Mailbox& mailbox(std::size_t host, Channel channel) {
    return mailboxes_[2 * host + static_cast<std::size_t>(channel)];
  }

  static nic::Address address_of(std::size_t host, Channel channel);
  // kInvalidDestination for an address that no host has.
  nic::Destination find(const nic::Address& address) const;

  std::uint64_t carried() const { return carried_; }
  std::uint64_t dropped() const { return dropped_; }
  void count(bool carried) { ++(carried ? carried_ : dropped_); }

 private:
  std::vector<Mailbox> mailboxes_;  // two to each host
  std::uint64_t carried_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace pullman::bench
