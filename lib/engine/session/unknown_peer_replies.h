// Answers a CHECK for another engine, which came here for want of the right address, with an
// unknown-peer reply (wire.md 9.10). The reply is one packet, no longer than the CHECK, to the
// address that it names, and is sent seldom, since the sender has proved nothing.
#pragma once

#include <chrono>
#include <optional>

#include "base/time.h"
#include "engine/nics/resolver.h"
#include "pullman/config.h"
#include "wire/check.h"
#include "wire/header.h"

namespace pullman::engine {

class UnknownPeerReplies {
 public:
  UnknownPeerReplies(const Config& config, const NicTable& nics, Resolver& resolver)
      : checksum_(config.checksum), nics_(nics), resolver_(resolver) {}

  // Begins the reply to a CHECK that came by the NIC of that slot, which resolves the way back, and
  // was sealed with that one of the job's keys.
  void reply(Instant now, std::size_t slot, std::uint8_t key, const wire::PacketHeader& header,
             const wire::Check& check);
  // Sends the reply if the way back was resolved, and drops it otherwise.
  void handle_resolved(const nic::PortEvent& event);
  // Drops the reply that waits for a NIC whose ports are replaced.
  void forget(std::size_t slot);

 private:
  static constexpr Duration kPause = std::chrono::milliseconds(10);

  struct Reply {
    std::size_t slot = 0;
    std::uint8_t key = 0;
    std::uint8_t rail = 0;
    wire::CheckRound round;
    std::uint64_t epoch = 0;  // the epoch that the CHECK asked for
  };

  const bool checksum_;
  const NicTable& nics_;
  Resolver& resolver_;
  std::optional<Reply> pending_;
  Instant next_ = Instant::min();
};

}  // namespace pullman::engine
