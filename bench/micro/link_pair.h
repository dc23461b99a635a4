// Two engines on a NIC in memory, connected, and the virtual time they share.
#pragma once

#include <memory>
#include <optional>

#include "engine/engine.h"
#include "micro/memory_nic.h"
#include "nic/trace/ring.h"
#include "wire/header.h"

namespace pullman::bench {

// An engine as a host of the network. All that protect packets belong to one job. `trace` outlives
// it, and has its packets; null: there is none.
std::unique_ptr<engine::Engine> make_engine(MemoryNetwork& network, std::size_t host,
                                            const Config& config, Instant now,
                                            wire::Protection protection = wire::Protection::kOff,
                                            nic::trace::Ring* trace = nullptr);

class LinkPair {
 public:
  // `others`: peers of the second end that connected, exchanged a message with it, and fell silent.
  // With `traced` both have a trace, as PULLMAN_TRACE makes it.
  explicit LinkPair(std::size_t others = 0, wire::Protection protection = wire::Protection::kOff,
                    bool traced = false);
  ~LinkPair();
  LinkPair(const LinkPair&) = delete;
  LinkPair& operator=(const LinkPair&) = delete;

  // One end: its engine, and the other end as its peer.
  struct End {
    std::unique_ptr<engine::Engine> engine;
    PeerId peer;
  };
  End& a() { return a_; }
  End& b() { return b_; }

  // A microsecond passes.
  Instant tick() { return now_ += std::chrono::microseconds(1); }
  Instant now() const { return now_; }
  // Both ends have a turn.
  void turn();

  // Data packets sent by both ends, and all datagrams (ACKs that travel alone, too). Aborts if
  // there was a retransmission: then the figures would mean something else.
  std::uint64_t packets() const;
  std::uint64_t datagrams() const { return network_.carried(); }

 private:
  void meet(std::size_t host);

  MemoryNetwork network_;
  Instant now_{std::chrono::seconds(1)};
  std::optional<nic::trace::Ring> a_trace_;
  std::optional<nic::trace::Ring> b_trace_;
  End a_;
  End b_;
};

}  // namespace pullman::bench
