// The receiving calls of the API: they post receives, look at unexpected messages, and claim them.
//
// They work as in Context, with the time as a parameter. A request that is in use is refused with
// kBusy and left unchanged.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "engine/session/peer_lifecycle.h"
#include "message/match/matcher_table.h"
#include "pullman/multi_receive.h"
#include "pullman/operations.h"
#include "pullman/request.h"

namespace pullman::engine {

// One receive with options. The memory that the segments name must stay valid until the request is
// done; the list of segments is copied.
struct ReceiveOp {
  PeerId source = kAnyPeer;
  Tag tag = 0;
  Tag ignore = 0;  // bits of the tag that may differ
  Segments segments{};
  ReceiveOptions options{};
};

class Matching {
 public:
  Matching(const PeerTable& peers, message::MatcherTable& matchers, ReadyPeers& ready,
           PeerLifecycle& lifecycle)
      : peers_(peers), matchers_(matchers), ready_(ready), lifecycle_(lifecycle) {}

  Status receive(Instant now, PeerId source, Tag tag, Tag ignore, std::span<std::byte> buffer,
                 Request& request);
  Status submit(Instant now, const ReceiveOp& op, Request& request);
  // Posts a buffer that many messages share; the segments of `op` are not used.
  Status submit(Instant now, const ReceiveOp& op, std::span<std::byte> buffer,
                MultiReceive& receive);
  bool cancel(Request& request);

  // --- unexpected messages; nothing if none matches, or if its first bytes have not arrived

  std::optional<Probe> probe(PeerId source, Tag tag, Tag ignore, std::uint8_t space = 0);
  std::optional<Probe> next_unexpected(std::uint8_t space);
  std::optional<Probe> claim(PeerId source, Tag tag, Tag ignore, std::uint8_t space = 0);
  Status receive_claimed(Instant now, const Claimed& claimed, Segments segments, Request& request);
  Status discard(Instant now, const Claimed& claimed) noexcept;

 private:
  Status match_or_post(Instant now, Request& request) noexcept;
  void follow_up(Instant now, Peer& peer, bool more_to_come) noexcept;

  const PeerTable& peers_;
  message::MatcherTable& matchers_;
  ReadyPeers& ready_;
  PeerLifecycle& lifecycle_;
};

}  // namespace pullman::engine
