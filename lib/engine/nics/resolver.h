// Asks NICs to turn addresses into destinations, and tells by the answer's cookie what it is for: a
// channel of a rail, or the answer to a pending HELLO (wire.md 5.10). An answer that nobody waits
// for any more gives its destination back.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/nics/nic_table.h"
#include "engine/peer/peer_table.h"

namespace pullman::engine {

class Resolver {
 public:
  // Cookies that no peer has, for a user that tells its own.
  static constexpr std::uint64_t kUnknownPeerCookie = ~std::uint64_t{0};

  Resolver(const PeerTable& peers, const NicTable& nics) : peers_(peers), nics_(nics) {}

  // For a channel of the rail; Rail::resolving says that it is asked.
  void resolve(Rail& rail, ChannelKind kind, const nic::Address& address);
  // For both channels of a rail of several, unless known or asked already.
  void resolve_both(Rail& rail);
  // For the answer to the peer's pending HELLO.
  void resolve_answer(Peer& peer);
  void resolve_unknown_peer(std::size_t slot, const nic::Address& address);

  // What an answer is for; no peer: nobody waits for it.
  struct Purpose {
    Peer* peer = nullptr;
    Rail* rail = nullptr;  // null: it is for the answer to the peer's HELLO, if that is current
    bool is_answer = false;
  };
  Purpose purpose_of(ChannelKind kind, std::uint64_t cookie) const;

  // A NIC has answered.
  void note_answered(std::size_t slot) {
    --pending_;
    --pending_at_[slot];
  }
  // A NIC's ports are replaced: what they were asked is not answered.
  void forget(std::size_t slot) { pending_ -= std::exchange(pending_at_[slot], 0); }
  bool any_pending() const { return pending_ != 0; }

  // A port that is kept would keep the destination, too, and what it has for it.
  void release(std::size_t slot, ChannelKind kind, nic::Destination& to) const;
  void release(Rail& rail) const;

 private:
  void note_asked(std::size_t slot) {
    ++pending_;
    ++pending_at_[slot];
  }

  const PeerTable& peers_;
  const NicTable& nics_;
  std::size_t pending_ = 0;
  std::array<std::size_t, wire::kMaxNics> pending_at_{};  // of each NIC
};

}  // namespace pullman::engine
