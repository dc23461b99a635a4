// One-sided operations: what peers may reach here, and what the program does to theirs.
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

  // --- what peers may reach; false: the key is taken, or names nothing

  bool add_region(std::uint64_t key, std::span<std::byte> bytes, Access access) {
    return regions_.add(key, bytes, access);
  }
  // Under a key that nobody can guess.
  std::uint64_t add_region(std::span<std::byte> bytes, Access access);
  bool remove_region(std::uint64_t key) noexcept;
  std::optional<RemoteEvent> take_event();
  RemoteUse use() const { return regions_.use(); }
  RemoteUse use(std::uint64_t key) const { return regions_.use(key); }

  // --- what the program does to a peer's

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
