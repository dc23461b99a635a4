// What peers do to memory of an endpoint's domain: writes with immediate data complete in its
// queue, and accesses count. With FI_RMA_EVENT all of them count; without it only writes with
// immediate data, because programs bind one counter to all that comes in and take its value for the
// number of those and of messages.
#pragma once

#include <cstdint>

#include "ofi/endpoint/connections.h"
#include "ofi/endpoint/lanes.h"
#include "ofi/endpoint/transport.h"
#include "ofi/memory_region.h"
#include "pullman/context.h"

namespace pullman::ofi {

class Counter;

class RemoteAccess {
 public:
  enum class Counts { kAll, kImmediateData };

  RemoteAccess(Transport& transport, Connections& connections, Lanes& lanes, Regions& regions,
               Counts counts)
      : transport_(transport),
        connections_(connections),
        lanes_(lanes),
        regions_(regions),
        counts_all_(counts == Counts::kAll) {}

  // FI_REMOTE_READ and FI_REMOTE_WRITE in `flags`.
  void bind(Counter& counter, std::uint64_t flags);
  void unbind(Counter& counter);
  // Whether accesses of such a kind are counted.
  bool counts_any(std::uint64_t flags) const;
  bool counts(const Counter& counter) const;

  // Reports what peers have done since the last time.
  void report();

 private:
  Transport& transport_;
  Connections& connections_;
  Lanes& lanes_;
  Regions& regions_;
  const bool counts_all_;
  RemoteAccessCounters counters_;
  RemoteUse counted_;
  Counter* immediate_counter_ = nullptr;
};

}  // namespace pullman::ofi
