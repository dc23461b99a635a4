// How long packets to one peer may be. A path may carry less than the NICs at its ends, and nobody
// has to say so: datagram path MTU discovery (RFC 8899) for packets that are acknowledged.
//
// Optimistic: begins with what both NICs take. Packets that are lost again and again, while shorter
// ones arrive and none so long does, have met a black hole: the size falls to one that any path
// should carry, and probes search for the largest that arrives, the one it fell from first (a fall
// by chance is over in a round trip). Later it tries again, for paths change. What the network says
// (ICMP), which anybody can forge, is a hint: it shortens the search, and once it has been proved
// wrong it is not listened to for a while. Pure state: no clock, no packets; does not know what
// carries its probes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/sequence.h"
#include "base/time.h"

namespace pullman::reliability {

class PathSize {
 public:
  // What a path should carry: IPv6 promises 1280 (RFC 8899, 5.1.2). And what it must (wire.md 5.2).
  static constexpr std::size_t kBase = 1200;
  static constexpr std::size_t kLeast = 576;

  // `most`: what the NICs at both ends take.
  void start(std::size_t most);

  // Packets may be so long now. `most` of them all, if no path were narrower than its ends.
  std::size_t bytes() const { return bytes_; }
  std::size_t most() const { return most_; }

  // A packet was judged lost: one sent later has arrived. `next` is the next number of the link.
  void handle_lost(PacketNumber number, std::size_t bytes, PacketNumber next);
  // A packet arrived; matters only if watching().
  bool watching() const { return rounds_ != 0; }
  void handle_acked(std::size_t bytes) {
    if (bytes >= suspect_) rounds_ = 0;
  }

  // Whether bytes() has changed, or a hint would help (watching()), since it was last asked.
  bool has_news() const { return news_; }
  void take_news() { news_ = false; }
  // The network says that the path carries packets of so many bytes.
  void handle_hint(Instant now, std::size_t bytes);

  // Whether a probe should leave now, if there is something to send that would be the better for
  // it.
  bool probe_due(Instant now) const {
    return bytes_ < most_ && !probing_ && (searching_ || now >= trouble_->retry_at);
  }
  // A probe leaves; returns its length. One is under way at a time.
  std::size_t begin_probe();
  void handle_probe_acked(Instant now, std::size_t bytes);
  void handle_probe_lost(Instant now, std::size_t bytes);

 private:
  static constexpr int kRounds = 3;  // of losses without an arrival: a black hole
  static constexpr int kTries = 3;   // probes of one size (RFC 8899, 5.1.2: MAX_PROBES)
  // After a search the next one: a search costs some twenty packets. RFC 8899 asks for 600 s; the
  // first ones come sooner, for what made a search fail may have been chance.
  static constexpr Duration kFirstRetry = std::chrono::seconds(10);
  static constexpr Duration kLastRetry = std::chrono::seconds(600);
  static constexpr Duration kDistrust = std::chrono::seconds(600);

  std::size_t target() const;
  std::size_t next_below() const;
  void fall(std::size_t to);
  void look_on(Instant now);
  void settle(Instant now);

  std::uint16_t bytes_ = kLeast;
  std::uint16_t most_ = kLeast;
  std::uint16_t bad_ = 0;  // this many did not arrive, or has yet to be tried: the search ends here
  std::uint16_t suspect_ = 0;  // the longest that was lost, while watching()
  std::uint16_t hinted_ = 0;   // the last fall was to this, said the network; 0: it was not
  std::uint8_t rounds_ = 0;    // of losses since a packet of suspect_ bytes arrived
  std::uint8_t tries_ = 0;     // probes of this size that were lost
  bool searching_ = false;
  bool bad_first_ = false;  // the next size to be tried is bad_ itself
  bool probing_ = false;    // a probe is under way
  bool news_ = false;

  // Of a path that has lost packets.
  struct Trouble {
    PacketNumber round_end = 0;  // a loss from this number on is of another round
    Instant retry_at{};          // when to search again
    Duration retry_in = kFirstRetry;
    Instant distrust_until = Instant::min();  // no hint is listened to
  };
  std::unique_ptr<Trouble> trouble_;
};

}  // namespace pullman::reliability
