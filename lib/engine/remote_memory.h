// One-sided operations: the regions here that peers may access, and puts, gets and atomics on the
// peers' regions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/keyed_random.h"
#include "engine/sending.h"
#include "message/rx/regions.h"

namespace pullman::engine {

class RemoteMemory {
 public:
  RemoteMemory(const PeerTable& peers, message::Regions& regions, KeyedRandom& random,
               ReadyPeers& ready, Sending& sending)
      : peers_(peers), regions_(regions), random_(random), ready_(ready), sending_(sending) {}

  // --- regions here; false: the key is taken, or names no region

  bool add_region(std::uint64_t key, std::span<std::byte> bytes, Access access) {
    return regions_.add(key, bytes, access);
  }
  // Adds a region under a random key, which nobody can guess, and returns the key.
  std::uint64_t add_region(std::span<std::byte> bytes, Access access);
  bool remove_region(std::uint64_t key) noexcept;
  std::optional<RemoteEvent> take_event();
  RemoteUse use() const { return regions_.use(); }
  RemoteUse use(std::uint64_t key) const { return regions_.use(key); }

  // --- operations on a peer's regions

  Status put(Instant now, PeerId peer, const RemotePlace& place, ConstSegments segments,
             const PutOptions& options, Request& request);
  Status get(Instant now, PeerId peer, const RemotePlace& place, Segments segments,
             Request& request);
  Status atomic(Instant now, PeerId peer, const RemotePlace& place, const Atomic& atomic,
                Request& request);

 private:
  const PeerTable& peers_;
  message::Regions& regions_;
  KeyedRandom& random_;
  ReadyPeers& ready_;
  Sending& sending_;
};

}  // namespace pullman::engine
