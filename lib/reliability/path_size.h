// The packet size of the path to one peer. A path may carry less than the NICs at its ends without
// any notice, so this is datagram path MTU discovery (RFC 8899) for packets that are acknowledged.
//
// Optimistic: begins with the size that both NICs take. If packets of some length are lost
// repeatedly and none arrives, while shorter ones do, there is a black hole. The size then falls to
// one that any path should carry, and probes search for the largest that arrives, beginning with
// the size it fell from (so a fall by chance is over in a round trip). The search is repeated
// later, since paths change. An ICMP message, which anybody can forge, is a hint: it shortens the
// search, and a path whose hint has proved wrong ignores hints for a while. Pure state: no clock,
// no packets; does not know what carries its probes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/sequence.h"
#include "base/time.h"

namespace pullman::reliability {

class PathSize {
 public:
  // The size that a path should carry (IPv6 guarantees 1280: RFC 8899, 5.1.2), and the size that it
  // must carry (wire.md 5.2).
  static constexpr std::size_t kBase = 1200;
  static constexpr std::size_t kLeast = 576;

  // `most` is the largest packet that the NICs at both ends take.
  void start(std::size_t most);

  // bytes() is the current packet size, most() its upper bound as given to start().
  std::size_t bytes() const { return bytes_; }
  std::size_t most() const { return most_; }

  // A packet was declared lost, so one sent later has arrived. `next` is the link's next number.
  void handle_lost(PacketNumber number, std::size_t bytes, PacketNumber next);
  // watching() is true while losses may mean a black hole. Only then need handle_acked() be called.
  bool watching() const { return rounds_ != 0; }
  void handle_acked(std::size_t bytes) {
    if (bytes >= suspect_) rounds_ = 0;
  }

  // has_news() is true if since take_news() bytes() has changed, or a loss has made a hint useful.
  bool has_news() const { return news_; }
  void take_news() { news_ = false; }
  // The network reports (ICMP) that the path carries packets of that many bytes.
  void handle_hint(Instant now, std::size_t bytes);

  // Returns true if a probe should leave now, provided that there is data to send which longer
  // packets would help.
  bool probe_due(Instant now) const {
    return bytes_ < most_ && !probing_ && (searching_ || now >= trouble_->retry_at);
  }
  // Begins a probe and returns its length. Only one probe is in flight at a time.
  std::size_t begin_probe();
  void handle_probe_acked(Instant now, std::size_t bytes);
  void handle_probe_lost(Instant now, std::size_t bytes);

 private:
  static constexpr int kRounds = 3;  // rounds of losses without an arrival that mean a black hole
  static constexpr int kTries = 3;   // probes of one size (RFC 8899, 5.1.2: MAX_PROBES)
  // The pause between searches, each of which costs some twenty packets, doubles from kFirstRetry
  // to kLastRetry. RFC 8899 recommends 600 s; the first searches come sooner, since the one before
  // may have failed by chance.
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
  std::uint16_t bad_ = 0;      // upper end of the search: this size was lost or has yet to be tried
  std::uint16_t suspect_ = 0;  // the longest packet lost while watching()
  std::uint16_t hinted_ = 0;   // the size of the hint that caused the last fall; 0: none did
  std::uint8_t rounds_ = 0;    // rounds of losses since a packet of suspect_ bytes arrived
  std::uint8_t tries_ = 0;     // lost probes of this size
  bool searching_ = false;
  bool bad_first_ = false;  // the next size to try is bad_ itself
  bool probing_ = false;    // a probe is in flight
  bool news_ = false;

  // The state of a path that has lost packets.
  struct Trouble {
    PacketNumber round_end = 0;  // a loss from this number on belongs to another round
    Instant retry_at{};          // when to search again
    Duration retry_in = kFirstRetry;
    Instant distrust_until = Instant::min();  // hints are ignored until then
  };
  std::unique_ptr<Trouble> trouble_;
};

}  // namespace pullman::reliability
