// Asks NICs to resolve addresses into destinations. The cookie of an answer tells what it is for: a
// channel of a rail, or the answer to a pending HELLO (wire.md 5.10). The destination of an answer
// that nobody waits for any more is given back.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/nics/nic_table.h"
#include "engine/peer/peer_table.h"

namespace pullman::engine {

class Resolver {
 public:
  // The cookie for addresses of stateless replies, which no peer has.
  static constexpr std::uint64_t kStatelessReplyCookie = ~std::uint64_t{0};

  Resolver(const PeerTable& peers, const NicTable& nics) : peers_(peers), nics_(nics) {}

  // Resolves the address of a channel of the rail; Rail::resolving says that it is under way.
  void resolve(Rail& rail, ChannelKind kind, const nic::Address& address);
  // Resolves both channels of a rail of a peer with several rails, unless known or under way.
  void resolve_both(Rail& rail);
  // Resolves the address to which the peer's pending HELLO is answered.
  void resolve_answer(Peer& peer);
  void resolve_stateless_reply(std::size_t slot, const nic::Address& address);

  // What an answer is for; without a peer nobody waits for it.
  struct Purpose {
    Peer* peer = nullptr;
    Rail* rail = nullptr;  // null: it is for the answer to the peer's HELLO, if `is_answer`
    bool is_answer = false;
  };
  Purpose purpose_of(ChannelKind kind, std::uint64_t cookie) const;

  // Takes the NIC's answer for a channel of the rail. Returns whether the channel still has the
  // address that was asked about.
  static bool take_answer(Rail& rail, ChannelKind kind);
  // Notes that the rail's addresses have changed: the answers under way are about the old ones.
  static void note_moved(Rail& rail) { rail.stale = rail.resolving; }
  // Waits for no answer any more: the rail leaves its NIC, or that has new ports.
  static void drop_answers(Rail& rail) { rail.resolving = rail.stale = 0; }

  // Notes that a NIC has answered.
  void note_answered(std::size_t slot) {
    --pending_;
    --pending_at_[slot];
  }
  // Forgets what a NIC's ports were asked: they are replaced and will not answer.
  void forget(std::size_t slot) { pending_ -= std::exchange(pending_at_[slot], 0); }
  bool any_pending() const { return pending_ != 0; }

  // Gives a destination back to its port, which would otherwise keep it and what it holds for it.
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
  std::array<std::size_t, wire::kMaxNics> pending_at_{};  // the same for each NIC
};

}  // namespace pullman::engine
