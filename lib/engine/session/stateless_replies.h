// Replies to packets of engines that are no peers: to a CHECK for another engine, which came here
// for want of the right address (wire.md 9.10), and to a HELLO that is protected in another way
// than we protect packets (wire.md 12.7). A reply is one packet, no longer than what it answers, to
// the address that that names, and is sent seldom, since the sender has proved nothing.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

#include "base/time.h"
#include "engine/nics/resolver.h"
#include "pullman/config.h"
#include "wire/check.h"
#include "wire/header.h"
#include "wire/hello.h"

namespace pullman::engine {

class StatelessReplies {
 public:
  StatelessReplies(const Config& config, const NicTable& nics, Resolver& resolver)
      : checksum_(config.checksum), nics_(nics), resolver_(resolver) {}

  // How what is answered came: by the NIC of that slot, sealed with that one of the job's keys.
  struct Way {
    std::size_t slot = 0;
    std::uint8_t key = 0;
  };
  // Begin a reply; the way back is resolved first.
  void reply_unknown_peer(Instant now, const Way& way, const wire::PacketHeader& header,
                          const wire::Check& check);
  void refuse_protection(Instant now, const Way& way, const wire::Hello& hello);
  // Sends the reply if the way back was resolved, and drops it otherwise.
  void handle_resolved(const nic::PortEvent& event);
  // Drops the reply that waits for a NIC whose ports are replaced.
  void forget(std::size_t slot);

 private:
  static constexpr Duration kPause = std::chrono::milliseconds(10);

  struct Reply {
    Way way;
    std::vector<std::byte> packet;
  };

  bool may_reply(Instant now) const { return !pending_ && now >= next_; }
  void begin(Instant now, Reply reply, const nic::Address& to);

  const bool checksum_;
  const NicTable& nics_;
  Resolver& resolver_;
  std::optional<Reply> pending_;
  Instant next_ = Instant::min();
};

}  // namespace pullman::engine
