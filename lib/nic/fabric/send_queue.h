// The sending half of a fabric port: puts the caller's packets into the provider's queue.
//
// There are two ways, chosen once. A provider that copies during the call (udp) gets the bytes by
// fi_inject(), which makes no completion. Any other may read later, so the packet is gathered into
// a slot of our own behind the provider's prefix, and the slot is held until its completion. Free
// slots are the credits: some providers (usnic) do not check theirs, and posting too many would
// fault.
#pragma once

#include <rdma/fi_eq.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "nic/fabric/facts.h"
#include "nic/fabric/slab.h"
#include "nic/port.h"

namespace pullman::nic::fabric {

class SendQueue {
 public:
  // `completions` is bound to `endpoint` for transmission only, and has room for slab.slots()
  // entries.
  SendQueue(const Facts& facts, std::optional<Slab::Options> slots, fid_cq* completions);

  void start(fid_ep* endpoint) { endpoint_ = endpoint; }

  std::size_t send(std::span<const Outgoing> batch, PortCounters& counters) {
    return slab_ ? send_slots(batch, counters) : send_at_once(batch, counters);
  }

  // Takes back the slots of finished sends.
  void reclaim(PortCounters& counters);

  // How many sends were ever posted, and how many of them are finished. A destination may be
  // removed from the address vector when all sends posted before are finished.
  std::uint64_t posted() const { return posted_; }
  std::uint64_t finished() const { return finished_; }
  std::size_t in_flight() const { return static_cast<std::size_t>(posted_ - finished_); }
  bool broken() const { return broken_; }

 private:
  enum class Outcome { kTaken, kLost, kRefused };

  std::size_t send_at_once(std::span<const Outgoing> batch, PortCounters& counters);
  std::size_t send_slots(std::span<const Outgoing> batch, PortCounters& counters);
  Outcome inject(const Outgoing& packet, PortCounters& counters);
  Outcome post(const Outgoing& packet, PortCounters& counters);
  void release(const void* context);
  static Outcome lost(ssize_t result, PortCounters& counters);
  bool read_error(PortCounters& counters);

  std::size_t prefix_;  // bytes that the provider wants in front
  bool verbs_status_;
  fid_cq* completions_;
  fid_ep* endpoint_ = nullptr;
  std::optional<Slab> slab_;         // none when fi_inject() is used
  std::vector<std::uint32_t> free_;  // slots without a send: the credits
  std::vector<std::byte> gathered_;  // with fi_inject(): the two segments of a packet, joined
  std::uint64_t posted_ = 0;
  std::uint64_t finished_ = 0;
  bool broken_ = false;  // the queue failed, or returns posted sends: nothing leaves any more
};

}  // namespace pullman::nic::fabric
