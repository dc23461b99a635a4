// Decides which packets of messages ask for their ACK. A receiver does not send an ACK by itself in
// the middle of a long message, so the packet that a caller waits for asks, and from time to time
// another.
//
// Counts packets; knows no time and no window. One per outbox.
#pragma once

#include <algorithm>
#include <cstdint>

namespace pullman::message {

// Chunks of one message that are sent together.
struct LeavingChunks {
  std::uint32_t count = 0;
  bool end_message = false;    // all bytes of the message are cut
  bool are_awaited = false;    // the caller waits for the message to be acked
  bool more_follow = false;    // more is to be cut, of this message or of others
  bool pool_is_short = false;  // nothing can be cut until an ACK frees packets
};

class AckRequester {
 public:
  // The last packet of a message asks if none of this many packets has asked.
  static constexpr std::uint32_t kPacketsPerRequest = 64;
  // While packets run out any chunk asks if none of this many has asked.
  static constexpr std::uint32_t kPacketsPerRequestIfShort = 16;

  // Some of the packets were acked: the next request can wait.
  void handle_ack() { packets_ = 0; }

  // A packet of copied messages is sent. Returns whether it asks for its ACK; it does if it is
  // awaited.
  bool note_packet(bool is_awaited) {
    const bool asks = is_awaited || count(1);
    // A long message's request stays due: this packet may take another rail than its chunks.
    if (asks) [[unlikely]]
      packets_ = 0;
    return asks;
  }

  // Chunks are sent. Returns whether the last of them asks for its ACK: because it or an earlier
  // one is awaited and no later chunk would ask; or because a message ends and no packet has asked
  // for long; or because packets run out.
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
  // Returns true if no packet has asked for long.
  bool count(std::uint32_t packets) {
    constexpr std::uint32_t kMax = 127;
    static_assert(kPacketsPerRequest <= kMax);
    packets_ = static_cast<std::uint8_t>(std::min(packets_ + packets, kMax) & kMax);
    return packets_ >= kPacketsPerRequest;
  }

  std::uint8_t packets_ : 7 = 0;  // since an ACK came or was asked for, up to kMax
  std::uint8_t is_due_ : 1 = 0;   // an awaited packet has been sent that did not ask
};

}  // namespace pullman::message
