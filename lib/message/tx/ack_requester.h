// Which packets of messages ask for their ACK. A receiver says nothing by itself in the middle of a
// long message, so the packet that somebody waits for asks, and now and then another.
//
// Counts packets; knows no time and no window. One per outbox.
#pragma once

#include <algorithm>
#include <cstdint>

namespace pullman::message {

// Chunks of one message that leave together.
struct LeavingChunks {
  std::uint32_t count = 0;
  bool end_message = false;    // nothing of it is left to be cut
  bool are_awaited = false;    // the caller, or the peer, waits for the message to be acked
  bool more_follow = false;    // there is more to cut, of this message or of others
  bool pool_is_short = false;  // packets run out: nothing can be cut until an ACK frees some
};

class AckRequester {
 public:
  // The end of a message asks if none of so many packets has.
  static constexpr std::uint32_t kPacketsPerRequest = 64;
  // Where packets run out any chunk asks if none of so many has.
  static constexpr std::uint32_t kPacketsPerRequestIfShort = 16;

  // An ACK of some of the packets came: the next one need not be asked for yet.
  void handle_ack() { packets_ = 0; }

  // A packet of copied messages leaves. True if it asks for its ACK, as it does if somebody waits
  // for it.
  bool note_packet(bool is_awaited) {
    const bool asks = is_awaited || count(1);
    // A long message's request stays due: this packet may take another rail than its chunks.
    if (asks) [[unlikely]]
      packets_ = 0;
    return asks;
  }

  // Chunks leave. True if the last of them asks for its ACK: somebody waits for it, or for one
  // before it, and nothing is left to cut that would ask; or a message ends there, and no packet
  // has asked for long.
  bool note_chunks(const LeavingChunks& chunks) {
    if (chunks.end_message && chunks.are_awaited) is_due_ = 1;
    const bool is_last = is_due_ != 0 && !chunks.more_follow;
    const bool is_time = count(chunks.count) && chunks.end_message;
    const bool is_short = packets_ >= kPacketsPerRequestIfShort && chunks.pool_is_short;
    if (!is_last && !is_time && !is_short) return false;
    is_due_ = packets_ = 0;
    return true;
  }

 private:
  // True: no packet has asked for long.
  bool count(std::uint32_t packets) {
    constexpr std::uint32_t kMax = 127;
    static_assert(kPacketsPerRequest <= kMax);
    packets_ = static_cast<std::uint8_t>(std::min(packets_ + packets, kMax) & kMax);
    return packets_ >= kPacketsPerRequest;
  }

  std::uint8_t packets_ : 7 = 0;  // since an ACK came or was asked for; kMax: or more
  std::uint8_t is_due_ : 1 = 0;   // somebody waits for a packet that has not asked
};

}  // namespace pullman::message
