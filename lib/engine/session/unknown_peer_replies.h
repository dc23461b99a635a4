// A question for another engine is answered (wire.md 9.10): it is for want of the right address
// that it came here. One small answer, no longer than the question was, to the address it names,
// and seldom: nobody has proved anything here.
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

  // It came by the NIC of that slot, which is asked for the way back.
  void reply(Instant now, std::size_t slot, const wire::PacketHeader& header,
             const wire::Check& check);
  // The way back is known, or there is none.
  void handle_resolved(const nic::PortEvent& event);
  // That NIC's ports are replaced.
  void forget(std::size_t slot);

 private:
  static constexpr Duration kPause = std::chrono::milliseconds(10);

  struct Reply {
    std::size_t slot = 0;
    std::uint8_t rail = 0;
    wire::CheckRound round;
    std::uint64_t epoch = 0;  // it asked for
  };

  const bool checksum_;
  const NicTable& nics_;
  Resolver& resolver_;
  std::optional<Reply> pending_;
  Instant next_ = Instant::min();
};

}  // namespace pullman::engine
