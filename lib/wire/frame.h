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
  kChunk = 2,      // a chunk of a larger message
  kGrant = 3,      // how many bytes of a message its sender may send
  kAllowance = 4,  // how much unexpected memory the receiver of this frame may use up
  kSack = 5,       // the packets beyond the cumulative ACK that have arrived
  kHello = 6,      // the sender's identity and NICs (hello.h)
  kPing = 7,       // asks for an ACK at once
  kBye = 8,        // ends the connection: the sender will send nothing more
  kPadding = 9,    // makes a packet long, to probe the path MTU
  kWays = 10,      // how the sender's NICs reach the receiver's (rails.h)
  kRail = 11,      // a rail's state at the sender (rails.h)
  kCheck = 12,     // a probe of the connectivity check (check.h)
  kChecked = 13,   // the CHECKs that have arrived (check.h)
  kResult = 14,    // the result of a message that asks for one
  kEnvelope = 15,  // announces a message whose bytes wait at its sender, so that it can be matched
  kBlocked = 16,   // the sender waits for more allowance than the limit it names
  kNics = 17,      // the sender's current NICs (nics.h)
  kMemory = 18,    // shared memory for peers on one host (memory.h)
};

inline constexpr std::size_t kFrameHeadBytes = 4;
inline constexpr std::size_t kMessageBytes = 16;   // before the payload
inline constexpr std::size_t kChunkBytes = 32;     // before the payload
inline constexpr std::size_t kBulkHeadBytes = 28;  // of a bulk packet, before the payload
inline constexpr std::size_t kGrantBytes = 16;
inline constexpr std::size_t kAllowanceBytes = 20;
inline constexpr std::size_t kSackBytes = 8;  // before the bitmap
inline constexpr std::size_t kPingBytes = 4;
// A BYE has 4 more bytes for each excepted id below the one it names, and 8 for each word of 64 ids
// beyond that.
inline constexpr std::size_t kByeBytes = 12;
inline constexpr std::size_t kMaxByeData = 512;
inline constexpr std::size_t kMaxByeExcepted = 64;
inline constexpr std::size_t kPaddingBytes = 4;  // before the zeros
inline constexpr std::size_t kWaysBytes = 4;     // before the counts and the matrix
inline constexpr std::size_t kRailBytes = 8;
inline constexpr std::size_t kResultBytes = 12;
inline constexpr std::size_t kEnvelopeBytes = 24;  // before the lead
inline constexpr std::size_t kBlockedBytes = 12;
inline constexpr std::size_t kCheckHeadBytes = 4;  // of CHECK and CHECKED, before their body

// Chunks other than the last should not be shorter (wire.md 4.4).
inline constexpr std::size_t kLeastChunk = 512;

// The largest message length that a chunk may name (wire.md 4.4): far above any memory, far below
// an overflow.
inline constexpr std::uint64_t kMaxMessageBytes = std::uint64_t{1} << 47;

// One decoded frame. Its type says which members are valid; `data` points into the packet.
struct Frame {
  FrameType type = FrameType::kPing;
  std::uint8_t kind = 0;  // message, chunk, envelope: see kind.h
  // message: low 32 bits of the message id. sack: of its first packet number. bye: of the id of the
  // first missing message. rail: the count of this report
  std::uint32_t id = 0;
  std::uint64_t tag = 0;     // message, chunk, envelope
  std::uint64_t total = 0;   // chunk: bytes of the whole message; 0: not given, nor is the tag
  std::uint64_t offset = 0;  // chunk: where `data` lies in the message
  // grant: bytes granted in total. allowance: charge granted in total. rail: number and state
  // (rails.h). result: its value (kind.h). bye: number of excepted ids
  std::uint64_t limit = 0;
  std::span<const std::byte> data;  // message, chunk: payload. sack: bitmap. bye: excepted ids,
                                    // bitmap. hello, ways, check: its body
};

// Reads the frames of one packet's body in turn.
class FrameReader {
 public:
  explicit FrameReader(std::span<const std::byte> body) : rest_(body) {}

  // Reads the next frame into `out`. Returns false at the end, or at a malformed frame: see ok().
  bool next(Frame& out);
  // Reads the next frame if it is a MESSAGE, as most are. Otherwise returns false and reads
  // nothing; then call next().
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

// Reads the CHUNK of a bulk packet, which has neither tag nor total (wire.md 2.11) and whose header
// was decoded before. Returns false if it is malformed.
bool read_bulk(std::span<const std::byte> packet, Frame& out);

// Returns true if every frame of a body is well-formed. Called before any of them is processed.
bool well_formed(std::span<const std::byte> body);

// Needs a body with at least one frame.
inline bool begins_with_chunk(std::span<const std::byte> body) {
  return body.front() == static_cast<std::byte>(FrameType::kChunk);
}

// The frames of one packet: all are validated first, then taken one by one. Each is decoded once,
// except those beyond kMost, which are decoded again when they are taken.
class FrameList {
 public:
  // Reads all frames; returns well_formed(). The list refers to the body.
  bool read(std::span<const std::byte> body);
  // The same for a bulk packet.
  bool read_bulk(std::span<const std::byte> packet);

  // Returns true if there is exactly one frame.
  bool is_alone() const { return count_ == 1; }
  // Returns true if there is exactly one frame, a MESSAGE.
  bool is_one_message() const { return is_alone() && frames_[0].type == FrameType::kMessage; }
  // Returns the first frame. There must be one.
  const Frame& front() const { return frames_[0]; }

  // Returns the next frame, valid until next() is called again; null after the last.
  const Frame* next() {
    if (taken_ < count_) [[likely]]
      return &frames_[taken_++];
    return count_ == kMost && rest_.next(further_) ? &further_ : nullptr;
  }

 private:
  static constexpr std::size_t kMost = 64;  // as many as messages of 8 bytes in an MTU of 1500

  std::size_t count_ = 0;
  std::size_t taken_ = 0;
  std::array<Frame, kMost> frames_;
  FrameReader rest_{{}};  // the frames after those in frames_, if that is full
  Frame further_;
};

// Writers. Each writes at `out`, which has room as given by the constants above, and returns the
// number of bytes written. The caller places the payload of a message or chunk right after them.
// put_frame_head() writes what every frame begins with: its type, and the length of its data.
void put_frame_head(std::byte* out, FrameType type, std::size_t length);
std::size_t put_message(std::byte* out, std::uint64_t id, std::uint64_t tag, std::size_t length);
// The same for a kind other than 0, whose lead is part of the data.
std::size_t put_message(std::byte* out, const Frame& message, std::size_t length);
std::size_t put_chunk(std::byte* out, const Frame& chunk, std::size_t length);
// Writes the part of a bulk packet between header and payload: id and offset.
std::size_t put_bulk(std::byte* out, const Frame& chunk);

// Consecutive chunks of one message.
struct Cut {
  std::uint32_t count = 0;
  std::uint32_t each = 0;     // bytes of each chunk but the last
  std::uint32_t last = 0;     // bytes of the last chunk
  std::uint32_t overlap = 0;  // bytes of the last chunk that the one before has, too
};
// Write the heads of all chunks, `stride` bytes apart. `first` gives the first one's id, tag, total
// and offset.
void put_chunks(std::byte* out, std::size_t stride, const Frame& first, const Cut& cut);
void put_bulks(std::byte* out, std::size_t stride, const Frame& first, const Cut& cut);
std::size_t put_grant(std::byte* out, std::uint64_t id, std::uint64_t limit);
std::size_t put_allowance(std::byte* out, std::uint64_t limit, std::uint64_t whole_limit);
std::size_t put_blocked(std::byte* out, std::uint64_t limit);
// Writes id, kind, tag and total; the caller adds the lead.
std::size_t put_envelope(std::byte* out, const Frame& envelope, std::size_t lead_bytes);
std::size_t put_result(std::byte* out, std::uint64_t id, Result result);
std::size_t put_ping(std::byte* out);
// Writes which messages have arrived (wire.md 4.9): all before `missing` but the excepted ids,
// which ascend, and of those after it the ones in the bitmap `beyond`, whose last word is not 0.
// Both fit into kMaxByeData.
std::size_t put_bye(std::byte* out, std::uint64_t missing, std::span<const std::uint32_t> excepted,
                    std::span<const std::uint64_t> beyond);
// Return excepted id number `at`, and the bitmap, of a BYE that was read.
std::uint32_t bye_excepted(const Frame& bye, std::size_t at);
std::span<const std::byte> bye_bitmap(const Frame& bye);
std::size_t put_hello(std::byte* out, std::size_t length);
std::size_t put_padding(std::byte* out, std::size_t length);

// Reads back what put_chunk() wrote: a CHUNK's fields, without its data.
Frame chunk_head(const std::byte* at);
// The same for put_bulk().
Frame bulk_head(const std::byte* at);
// Reads a CHUNK whose bytes, `length` of them, are elsewhere; `bytes` is what it has without them.
// out.data must not be read: it tells only their number. Returns false if it is malformed.
bool read_chunk_elsewhere(std::span<const std::byte> bytes, std::uint64_t length, Frame& out);

// Writes the head of a SACK; set_sack_word() then writes its bitmap of `words` 64-bit words. Bit i
// (least significant first) of word w means that packet `first + 64 w + i` has arrived.
std::size_t put_sack(std::byte* out, std::uint64_t first, std::size_t words);
void set_sack_word(std::byte* sack, std::size_t word, std::uint64_t bits);
// Returns a word of the bitmap of a SACK or a BYE.
std::uint64_t sack_word(std::span<const std::byte> bitmap, std::size_t word);

}  // namespace pullman::wire
