// The receiving half of a fabric port: buffers are posted, filled, lent to the caller, given back,
// and reposted.
//
// A buffer is in one place at any time: with the provider, lent, or idle (to be reposted). Every
// completion, good, truncated or failed, returns its buffer. A buffer has one byte more than the
// largest packet, so that the length shows when a provider silently truncates a longer datagram
// (udp).
#pragma once

#include <rdma/fi_eq.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nic/fabric/facts.h"
#include "nic/fabric/slab.h"
#include "nic/port.h"

namespace pullman::nic::fabric {

class ReceiveRing {
 public:
  // `completions` is bound to the endpoint for receiving, and has room for slots.slots entries.
  ReceiveRing(const Facts& facts, std::size_t packet_bytes, const Slab::Options& slots,
              fid_cq* completions);

  // Returns the bytes of a slot for packets of that size.
  static std::size_t slot_bytes(const Facts& facts, std::size_t packet_bytes) {
    return facts.receive_prefix + packet_bytes + 1;
  }

  // Posts all buffers. The endpoint must be enabled.
  void start(fid_ep* endpoint);

  std::size_t receive(std::span<Incoming> batch, PortCounters& counters);
  void give_back(std::span<const Incoming> batch);

  bool broken() const { return broken_; }

 private:
  bool accept(const fi_cq_msg_entry& completion, Incoming& out, PortCounters& counters);
  void post_idle();
  bool read_error(PortCounters& counters);

  std::size_t prefix_;        // bytes that the provider puts in front
  std::size_t packet_bytes_;  // largest packet
  bool one_per_read_;
  bool verbs_status_;
  fid_cq* completions_;
  fid_ep* endpoint_ = nullptr;
  Slab slab_;
  std::vector<std::uint32_t> idle_;  // buffers neither posted nor lent
  std::vector<bool> lent_;           // by slot: lent to the caller
  bool broken_ = false;  // the queue failed, or returns posted buffers: nothing comes any more
};

}  // namespace pullman::nic::fabric
