// What an idle connected peer costs one engine, in bytes of heap, over a NIC in memory.
//
// One after another: 10,000 peers connect, exchange a message both ways and fall silent. That is
// the figure with a target. All at once: what stays when every peer had a message in flight at the
// same moment and all are idle again: pools keep what they once made.
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <deque>
#include <memory>

#include "base/check.h"
#include "engine/peer/peer.h"
#include "micro/link_pair.h"

namespace pullman::bench {
namespace {

using wire::Protection;

constexpr std::size_t kTarget = 1024;
constexpr std::size_t kMaxForKeys = 64;  // that protection may add
constexpr Tag kTag = 7;

// In use, with what the allocator adds to each block.
std::size_t heap_bytes() {
  const auto info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

Config config_for(std::size_t peers) {
  Config config;
  config.max_peers = peers;
  return config;
}

// The engine that is measured, and those that call it.
class Crowd {
 public:
  // A caller and the two ends of its connection.
  struct Caller {
    std::size_t host;
    std::unique_ptr<engine::Engine> engine;
    PeerId hub;   // as the caller knows it
    PeerId peer;  // as the hub knows it
  };

  explicit Crowd(std::size_t peers, Protection protection = Protection::kOff)
      : protection_(protection),
        network_(peers + 1),
        empty_(heap_bytes()),
        hub_(make_engine(network_, 0, config_for(peers), now_, protection)) {}
  ~Crowd() { hub_->abort(); }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  // Connects; a message goes each way; both are at rest.
  Caller meet(std::size_t host) {
    Caller caller{host, make_engine(network_, host, config_for(1), now_, protection_), {}, {}};
    caller.hub = caller.engine->connect(now_, hub_->address()).peer;
    std::optional<PeerId> accepted;
    while (!(accepted = hub_->accept())) turn(*caller.engine);
    caller.peer = *accepted;
    exchange(caller, *caller.engine, caller.hub, *hub_, caller.peer);
    exchange(caller, *hub_, caller.peer, *caller.engine, caller.hub);
    rest(caller);
    return caller;
  }

  // Without a word: to the hub the peer is still connected, and idle.
  void leave(Caller caller) {
    PULLMAN_CHECK(hub_->inspector().peer_state(caller.peer) == PeerState::kConnected);
    caller.engine->abort();
    caller.engine.reset();
    clear_mail(caller.host);
  }

  // A message to every caller, all of them in flight before the first is acked.
  void tell_all(std::deque<Caller>& callers) {
    std::deque<Request> sends(callers.size());
    for (std::size_t i = 0; i < callers.size(); ++i) {
      hub_->sending().send(now_, callers[i].peer, kTag, message_, sends[i]);
    }
    for (Caller& caller : callers) {
      Request receive;
      caller.engine->matching().receive(now_, caller.hub, kTag, 0, buffer_, receive);
      while (!receive.done()) caller.engine->progress(tick());
      rest(caller);
    }
  }

  // The hub's heap with that many idle peers: the NIC in memory is not its own.
  std::size_t hub_bytes(std::size_t peers) {
    const Stats stats = hub_->inspector().stats();
    PULLMAN_CHECK(stats.peers_connected == peers && stats.packets_in_flight == 0);
    // The ciphers of peers that are silent are dropped.
    for (int turns = 0; turns < 8; ++turns) hub_->progress(now_ += std::chrono::seconds(1));
    clear_mail(0);
    return heap_bytes() - empty_;
  }

 private:
  Instant tick() { return now_ += std::chrono::microseconds(1); }
  void turn(engine::Engine& caller) {
    tick();
    hub_->progress(now_);
    caller.progress(now_);
  }
  void rest(Caller& caller) {
    for (int turns = 0; turns < 200; ++turns) turn(*caller.engine);
  }
  void exchange(Caller& caller, engine::Engine& from, PeerId to, engine::Engine& at,
                PeerId source) {
    Request send, receive;
    at.matching().receive(now_, source, kTag, 0, buffer_, receive);
    from.sending().send(now_, to, kTag, message_, send);
    while (!send.done() || !receive.done()) turn(*caller.engine);
  }
  void clear_mail(std::size_t host) {
    network_.mailbox(host, MemoryNetwork::Channel::kCommand).clear();
    network_.mailbox(host, MemoryNetwork::Channel::kData).clear();
  }

  const Protection protection_;
  MemoryNetwork network_;
  Instant now_{std::chrono::seconds(1)};
  std::size_t empty_;
  std::unique_ptr<engine::Engine> hub_;
  std::array<std::byte, 64> message_{}, buffer_{};
};

// The engine itself: with room for one peer, which has come, and is idle.
std::size_t engine_bytes(Protection protection) {
  Crowd crowd(1, protection);
  crowd.leave(crowd.meet(1));
  return crowd.hub_bytes(1);
}

std::size_t one_after_another(std::size_t peers, Protection protection) {
  Crowd crowd(peers, protection);
  for (std::size_t host = 1; host <= peers; ++host) crowd.leave(crowd.meet(host));
  return crowd.hub_bytes(peers);
}

std::size_t all_at_once(std::size_t peers) {
  Crowd crowd(peers);
  std::deque<Crowd::Caller> callers;
  for (std::size_t host = 1; host <= peers; ++host) callers.push_back(crowd.meet(host));
  crowd.tell_all(callers);
  for (auto& caller : callers) crowd.leave(std::move(caller));
  callers = std::deque<Crowd::Caller>();
  return crowd.hub_bytes(peers);
}

std::size_t each(std::size_t bytes, std::size_t engine, std::size_t peers) {
  return (bytes - engine + (peers - 1) / 2) / (peers - 1);
}

void report() {
  constexpr std::size_t kPeers = 10000;
  constexpr std::size_t kAtOnce = 500;
  const auto idle_with = [](Protection protection) {
    return each(one_after_another(kPeers, protection), engine_bytes(protection), kPeers);
  };
  engine_bytes(Protection::kAuthenticate);  // what the process has once, of logs and ciphers
  const std::size_t engine = engine_bytes(Protection::kOff);
  const std::size_t idle = idle_with(Protection::kOff);
  const std::size_t authenticated = idle_with(Protection::kAuthenticate);
  const std::size_t more = std::max(authenticated, idle) - idle;
  const std::size_t after = each(all_at_once(kAtOnce), engine, kAtOnce);
  fmt::print("engine with one peer                     {:>9} B\n", engine);
  fmt::print("idle peer, {} one after another       {:>9} B each   <= {} {}\n", kPeers, idle,
             kTarget, idle <= kTarget ? "met" : "MISSED");
  fmt::print("the same, authenticated                  {:>9} B more   <= {} {}\n", more,
             kMaxForKeys, more <= kMaxForKeys ? "met" : "MISSED");
  fmt::print("idle peer, {} once active all at once   {:>9} B each\n", kAtOnce, after);
  fmt::print("of which Peer {} B: Link {}, Outbox {}, Inbox {}\n", sizeof(engine::Peer),
             sizeof(reliability::Link), sizeof(message::Outbox), sizeof(message::Inbox));
}

}  // namespace
}  // namespace pullman::bench

int main() {
  pullman::bench::report();
}
