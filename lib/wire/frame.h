// Frames: the typed records inside a packet (wire.md 4).
//
// Knows bytes and what makes a frame well-formed. Does not know peers, messages in progress or
// grants.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/kind.h"
#include "wire/verdict.h"

namespace pullman::wire {

// wire.md 4.1
enum class FrameType : std::uint8_t {
  kMessage = 1,    // a whole small message
  kChunk = 2,      // a piece of a larger message
  kGrant = 3,      // how much of a message the receiver wants sent
  kAllowance = 4,  // how much unexpected memory the sender may have used up
  kSack = 5,       // which packets beyond the cumulative ack have arrived
  kHello = 6,      // who I am and where (hello.h)
  kPing = 7,       // acknowledge at once
  kBye = 8,        // I shall send nothing more
  kPadding = 9,    // makes a packet long, to see whether the path carries it
  kWays = 10,      // how my NICs reach yours (rails.h)
  kRail = 11,      // a rail's state, as I see it (rails.h)
  kCheck = 12,     // does this arrive? (check.h)
  kChecked = 13,   // so much of that has arrived (check.h)
  kResult = 14,    // what became of a message that asks for it
  kEnvelope = 15,  // a message whose bytes wait at its sender: what it takes to match it
  kBlocked = 16,   // something waits for more allowance than the limit named
  kNics = 17,      // the NICs I have by now (nics.h)
};

inline constexpr std::size_t kFrameHeadBytes = 4;
inline constexpr std::size_t kMessageBytes = 16;   // before the payload
inline constexpr std::size_t kChunkBytes = 32;     // before the payload
inline constexpr std::size_t kBulkHeadBytes = 28;  // a bulk packet's, before the payload
inline constexpr std::size_t kGrantBytes = 16;
inline constexpr std::size_t kAllowanceBytes = 20;
inline constexpr std::size_t kSackBytes = 8;  // before the bitmap
inline constexpr std::size_t kPingBytes = 4;
// And 4 for each id below the one it names that it excepts, 8 for each 64 ids beyond that.
inline constexpr std::size_t kByeBytes = 12;
inline constexpr std::size_t kMaxByeData = 512;
inline constexpr std::size_t kMaxByeExcepted = 64;
inline constexpr std::size_t kPaddingBytes = 4;  // before the zeros
inline constexpr std::size_t kWaysBytes = 4;     // before the counts and the matrix
inline constexpr std::size_t kRailBytes = 8;
inline constexpr std::size_t kResultBytes = 12;
inline constexpr std::size_t kEnvelopeBytes = 24;  // before the lead
inline constexpr std::size_t kBlockedBytes = 12;
inline constexpr std::size_t kCheckHeadBytes = 4;  // CHECK's and CHECKED's, before their body

// Chunks should not be shorter, but for the last (wire.md 4.4).
inline constexpr std::size_t kLeastChunk = 512;

// Total message length a chunk may announce (wire.md 4.4): far above any memory, far below
// overflow.
inline constexpr std::uint64_t kMaxMessageBytes = std::uint64_t{1} << 47;

// One decoded frame. Which members mean something depends on the type; `data` points into the
// packet.
struct Frame {
  FrameType type = FrameType::kPing;
  std::uint8_t kind = 0;  // message, chunk, envelope: see kind.h
  // message: low 32 bits of the message id. sack: of its first number. bye: of the first message
  // that is missing. rail: which statement it is
  std::uint32_t id = 0;
  std::uint64_t tag = 0;     // message, chunk, envelope
  std::uint64_t total = 0;   // chunk: bytes of the whole message. 0: not said, nor is the tag
  std::uint64_t offset = 0;  // chunk: where `data` lies in the message
  // grant: bytes wanted in all. allowance: charge granted in all. rail: number and state (rails.h).
  // result: what it says (kind.h). bye: ids that it excepts
  std::uint64_t limit = 0;
  std::span<const std::byte> data;  // message, chunk: payload. sack: bitmap. bye: excepted ids,
                                    // bitmap. hello, ways, check: its body
};

// Reads the frames of one packet's body in turn.
class FrameReader {
 public:
  explicit FrameReader(std::span<const std::byte> body) : rest_(body) {}

  // True if another frame was read into `out`. False at the end, or at a malformed frame: see ok().
  bool next(Frame& out);
  // True if a MESSAGE was read; else nothing is: next() says what there is. Most frames are that.
  bool next_message(Frame& out);
  bool at_end() const { return rest_.empty(); }
  bool ok() const { return ok_; }

 private:
  bool fail() {
    ok_ = false;
    return false;
  }

  std::span<const std::byte> rest_;
  bool ok_ = true;
};

// Reads the CHUNK that is all of a bulk packet, which says neither tag nor total (wire.md 2.11).
// The packet was decoded before. False if it is malformed.
bool read_bulk(std::span<const std::byte> packet, Frame& out);

// Whether every frame of a body is well-formed. Asked before any of them is acted on.
bool well_formed(std::span<const std::byte> body);

// Of a body that has frames.
inline bool begins_with_chunk(std::span<const std::byte> body) {
  return body.front() == static_cast<std::byte>(FrameType::kChunk);
}

// The frames of one packet, decoded once: judged all together, then taken one by one. Those that do
// not fit here are decoded again when it is their turn.
class FrameList {
 public:
  // As well_formed(). The list refers to the body.
  bool read(std::span<const std::byte> body);
  // The same of a bulk packet.
  bool read_bulk(std::span<const std::byte> packet);

  // Whether there is one frame only.
  bool is_alone() const { return count_ == 1; }
  // Whether a MESSAGE is all there is.
  bool is_one_message() const { return is_alone() && frames_[0].type == FrameType::kMessage; }
  // The first. There is one.
  const Frame& front() const { return frames_[0]; }

  // The next frame, valid until next() is called again; null behind the last.
  const Frame* next() {
    if (taken_ < count_) [[likely]]
      return &frames_[taken_++];
    return count_ == kMost && rest_.next(further_) ? &further_ : nullptr;
  }

 private:
  static constexpr std::size_t kMost = 64;  // a packet of MTU 1500 full of messages of 8 bytes

  std::size_t count_ = 0;
  std::size_t taken_ = 0;
  std::array<Frame, kMost> frames_;
  FrameReader rest_{{}};  // behind the last of frames_, if that is full
  Frame further_;
};

// Writers. Each writes at `out`, which has room for what the constants above say, and returns the
// bytes written. Payloads of messages and chunks follow right behind and are the caller's to place.
// What every frame begins with: its type, and the length of its data.
void put_frame_head(std::byte* out, FrameType type, std::size_t length);
std::size_t put_message(std::byte* out, std::uint64_t id, std::uint64_t tag, std::size_t length);
// Of a kind other than 0, whose lead is part of the data.
std::size_t put_message(std::byte* out, const Frame& message, std::size_t length);
std::size_t put_chunk(std::byte* out, const Frame& chunk, std::size_t length);
// The head of a bulk packet behind its header: id and offset.
std::size_t put_bulk(std::byte* out, const Frame& chunk);

// Chunks that follow one another.
struct Cut {
  std::uint32_t count = 0;
  std::uint32_t each = 0;     // bytes of all but the last
  std::uint32_t last = 0;     // of the last
  std::uint32_t overlap = 0;  // of the last, that the one before has, too
};
// Heads of all of them, written `stride` bytes apart; the first one's id, tag, total and offset are
// given.
void put_chunks(std::byte* out, std::size_t stride, const Frame& first, const Cut& cut);
void put_bulks(std::byte* out, std::size_t stride, const Frame& first, const Cut& cut);
std::size_t put_grant(std::byte* out, std::uint64_t id, std::uint64_t limit);
std::size_t put_allowance(std::byte* out, std::uint64_t limit, std::uint64_t whole_limit);
std::size_t put_blocked(std::byte* out, std::uint64_t limit);
// Its id, kind, tag and total; the lead follows.
std::size_t put_envelope(std::byte* out, const Frame& envelope, std::size_t lead_bytes);
std::size_t put_result(std::byte* out, std::uint64_t id, Result result);
std::size_t put_ping(std::byte* out);
// What has arrived (wire.md 4.9): all before `missing` but those that are excepted, ascending, and
// of those behind it what the bitmap says, whose last word is not 0. Both fit into kMaxByeData.
std::size_t put_bye(std::byte* out, std::uint64_t missing, std::span<const std::uint32_t> excepted,
                    std::span<const std::uint64_t> beyond);
// The excepted id at that place, and the bitmap, of a BYE that was read.
std::uint32_t bye_excepted(const Frame& bye, std::size_t at);
std::span<const std::byte> bye_bitmap(const Frame& bye);
std::size_t put_hello(std::byte* out, std::size_t length);
std::size_t put_padding(std::byte* out, std::size_t length);

// Reads back what put_chunk() wrote: a CHUNK's fields, without its data.
Frame chunk_head(const std::byte* at);
// The same of put_bulk().
Frame bulk_head(const std::byte* at);

// Writes the head of a SACK whose bitmap of `words` 64-bit words follows; set_sack_word fills it
// in. Bit i (least significant first) of word w says that packet `first + 64 w + i` has arrived.
std::size_t put_sack(std::byte* out, std::uint64_t first, std::size_t words);
void set_sack_word(std::byte* sack, std::size_t word, std::uint64_t bits);
// Of a SACK or a BYE.
std::uint64_t sack_word(std::span<const std::byte> bitmap, std::size_t word);

}  // namespace pullman::wire
