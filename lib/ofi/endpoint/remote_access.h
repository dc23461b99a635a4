// Reports what peers do to memory of an endpoint's domain: writes with immediate data complete in
// its queue, and accesses are counted. With FI_RMA_EVENT all are counted; without it only writes
// with immediate data, because programs bind one counter to everything that arrives and take its
// value for the number of those and of messages.
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

  // `flags` holds FI_REMOTE_READ, FI_REMOTE_WRITE or both.
  void bind(Counter& counter, std::uint64_t flags);
  void unbind(Counter& counter);
  // Whether accesses of those kinds are counted.
  bool counts_any(std::uint64_t flags) const;
  bool counts(const Counter& counter) const;

  // Reports what peers have done since the last call.
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
