#include "wire/frame.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "wire/bytes.h"
#include "wire/header.h"

namespace pullman::wire {
namespace {

// A window that does not begin at a multiple of 64 extends over one more word (wire.md 4.7).
constexpr std::size_t kMaxSackWords = kWindow / 64 + 1;

// Returns the bytes before the data of that type (wire.md 4.1); 0 for an unknown type.
constexpr std::size_t fixed_bytes(std::uint8_t type) {
  switch (static_cast<FrameType>(type)) {
    case FrameType::kMessage:
      return kMessageBytes;
    case FrameType::kChunk:
      return kChunkBytes;
    case FrameType::kGrant:
      return kGrantBytes;
    case FrameType::kAllowance:
      return kAllowanceBytes;
    case FrameType::kSack:
      return kSackBytes;
    case FrameType::kHello:
      return kFrameHeadBytes;
    case FrameType::kPing:
      return kPingBytes;
    case FrameType::kBye:
      return kByeBytes;
    case FrameType::kPadding:
      return kPaddingBytes;
    case FrameType::kWays:
      return kWaysBytes;
    case FrameType::kRail:
      return kRailBytes;
    case FrameType::kCheck:
    case FrameType::kChecked:
      return kCheckHeadBytes;
    case FrameType::kResult:
      return kResultBytes;
    case FrameType::kEnvelope:
      return kEnvelopeBytes;
    case FrameType::kBlocked:
      return kBlockedBytes;
    case FrameType::kNics:
    case FrameType::kMemory:
      return kFrameHeadBytes;
  }
  return 0;
}
static_assert(fixed_bytes(0) == 0 && fixed_bytes(19) == 0);

constexpr bool may_have_kind(std::uint8_t type) {
  return type <= static_cast<std::uint8_t>(FrameType::kChunk) ||
         type == static_cast<std::uint8_t>(FrameType::kEnvelope);
}

void read_chunk_fields(const std::byte* in, Frame& out) {
  out.kind = load8(in + 1);
  out.id = load32(in + 4);
  out.tag = load64(in + 8);
  out.total = load64(in + 16);
  out.offset = load64(in + 24);
}

// A chunk is not empty and lies within its message (wire.md 4.4).
bool chunk_is_sane(const Frame& chunk) {
  return !chunk.data.empty() && chunk.total <= kMaxMessageBytes && chunk.offset < chunk.total &&
         chunk.data.size() <= chunk.total - chunk.offset &&
         (chunk.kind == 0 || kind_is_sane(chunk.kind, chunk.total));
}

// The data of an envelope is the lead, which is not all of the message (wire.md 4.12).
bool envelope_is_sane(const Frame& envelope) {
  return kind_is_sane(envelope.kind, envelope.total) && envelope.total <= kMaxMessageBytes &&
         may_be_announced(envelope.kind, envelope.total) &&
         envelope.data.size() == lead_bytes(envelope.kind);
}

// The excepted ids of a BYE ascend and are below the one it names; its bitmap has whole words, and
// the last one is not 0 (wire.md 4.9).
bool bye_is_sane(const Frame& bye) {
  const std::size_t length = bye.data.size();
  if (bye.limit > kMaxByeExcepted || length > kMaxByeData || length < 4 * bye.limit) return false;
  std::uint32_t before = std::uint32_t{1} << 31;
  for (std::size_t at = 0; at < bye.limit; ++at) {
    const std::uint32_t below = bye.id - bye_excepted(bye, at);
    if (below >= before || below == 0) return false;
    before = below;
  }
  const std::span<const std::byte> bitmap = bye_bitmap(bye);
  const std::size_t words = bitmap.size() / 8;
  return bitmap.size() % 8 == 0 && (words == 0 || sack_word(bitmap, words - 1) != 0);
}

// The header of a bulk packet (wire.md 2.11) is followed by the message id and an offset of 6
// bytes, which is read and written as 8 bytes together with the lower half of the id.
constexpr std::size_t kBulkOffsetAt = 2;
constexpr unsigned kBulkOffsetBits = 48;
static_assert(kBulkHeaderBytes + kBulkOffsetAt + sizeof(std::uint64_t) == kBulkHeadBytes);
static_assert(kMaxMessageBytes < std::uint64_t{1} << kBulkOffsetBits);

std::uint64_t offset_of_last(const Frame& first, const Cut& cut) {
  return first.offset + std::uint64_t{cut.each} * (cut.count - 1) - cut.overlap;
}

}  // namespace

void put_frame_head(std::byte* out, FrameType type, std::size_t length) {
  store8(out, static_cast<std::uint8_t>(type));
  store8(out + 1, 0);
  store16(out + 2, static_cast<std::uint16_t>(length));
}

[[gnu::always_inline]] inline bool FrameReader::next_message(Frame& out) {
  if (rest_.size() < kMessageBytes) [[unlikely]]
    return false;
  const std::byte* in = rest_.data();
  const std::uint32_t head = load32(in);
  const std::size_t length = head & 0xFFFF;
  if (head >> 16 != static_cast<std::uint32_t>(FrameType::kMessage) << 8 ||
      length > rest_.size() - kMessageBytes) {
    return false;
  }
  out.type = FrameType::kMessage;
  out.kind = 0;
  out.id = load32(in + 4);
  out.tag = load64(in + 8);
  out.data = {in + kMessageBytes, length};
  rest_ = rest_.subspan(kMessageBytes + length);
  return true;
}

bool FrameReader::next(Frame& out) {
  if (rest_.empty()) return false;
  if (rest_.size() < kFrameHeadBytes) return fail();
  const std::byte* in = rest_.data();
  const std::uint8_t type = load8(in);
  const std::size_t fixed = fixed_bytes(type);
  const std::size_t length = load16(in + 2);
  const std::uint8_t kind = load8(in + 1);
  if (fixed == 0 || rest_.size() < fixed + length) return fail();
  if (kind != 0 && !may_have_kind(type)) return fail();
  out.kind = kind;
  out.type = static_cast<FrameType>(type);
  out.data = rest_.subspan(fixed, length);
  rest_ = rest_.subspan(fixed + length);
  switch (out.type) {
    case FrameType::kMessage:
      out.id = load32(in + 4);
      out.tag = load64(in + 8);
      return kind == 0 || kind_is_sane(kind, length) || fail();
    case FrameType::kChunk:
      read_chunk_fields(in, out);
      return chunk_is_sane(out) || fail();
    case FrameType::kGrant:
      out.id = load32(in + 4);
      out.limit = load64(in + 8);
      return (length == 0 && out.limit <= kMaxMessageBytes) || fail();
    case FrameType::kAllowance:
      out.limit = load64(in + 4);
      out.total = load64(in + 12);
      return (length == 0 && out.total <= out.limit) || fail();
    case FrameType::kSack:
      out.id = load32(in + 4);
      return (length % 8 == 0 && length / 8 <= kMaxSackWords && length != 0) || fail();
    case FrameType::kHello:
    case FrameType::kPadding:
      return true;
    case FrameType::kPing:
      return length == 0 || fail();
    case FrameType::kBye:
      out.id = load32(in + 4);
      out.limit = load32(in + 8);
      return bye_is_sane(out) || fail();
    case FrameType::kWays:
    case FrameType::kNics:
    case FrameType::kMemory:
    case FrameType::kCheck:
    case FrameType::kChecked:
      return true;
    case FrameType::kRail:
      out.id = load16(in + 6);
      out.limit = load16(in + 4);
      return length == 0 || fail();
    case FrameType::kResult:
      out.id = load32(in + 4);
      out.limit = load32(in + 8);
      return (length == 0 && out.limit <= static_cast<std::uint64_t>(Result::kRefusedAccess)) ||
             fail();
    case FrameType::kEnvelope:
      out.id = load32(in + 4);
      out.tag = load64(in + 8);
      out.total = load64(in + 16);
      return envelope_is_sane(out) || fail();
    case FrameType::kBlocked:
      out.limit = load64(in + 4);
      return length == 0 || fail();
  }
  return fail();
}

bool read_bulk(std::span<const std::byte> packet, Frame& out) {
  out = bulk_head(packet.data() + kBulkHeaderBytes);
  out.data = packet.subspan(kBulkHeadBytes);
  return !out.data.empty() && out.offset < kMaxMessageBytes &&
         out.data.size() <= kMaxMessageBytes - out.offset;
}

bool well_formed(std::span<const std::byte> body) {
  FrameReader reader(body);
  Frame frame;
  while (reader.next(frame)) {
  }
  return reader.ok();
}

bool FrameList::read(std::span<const std::byte> body) {
  FrameReader reader(body);
  std::size_t count = reader.next_message(frames_[0]) ? 1 : 0;
  if (count == 1 && reader.at_end()) [[likely]] {  // one short message: latency matters most
    count_ = 1;
    taken_ = 0;
    return true;
  }
  while (count < kMost && !reader.at_end() &&
         (reader.next_message(frames_[count]) || reader.next(frames_[count]))) {
    ++count;
  }
  count_ = count;
  taken_ = 0;
  if (count == kMost) {
    rest_ = reader;
    while (reader.next(further_)) {
    }
  }
  return reader.ok();
}

bool FrameList::read_bulk(std::span<const std::byte> packet) {
  count_ = 1;
  taken_ = 0;
  return wire::read_bulk(packet, frames_[0]);
}

std::size_t put_message(std::byte* out, std::uint64_t id, std::uint64_t tag, std::size_t length) {
  put_frame_head(out, FrameType::kMessage, length);
  store32(out + 4, static_cast<std::uint32_t>(id));
  store64(out + 8, tag);
  return kMessageBytes;
}

std::size_t put_message(std::byte* out, const Frame& message, std::size_t length) {
  put_message(out, message.id, message.tag, length);
  store8(out + 1, message.kind);
  return kMessageBytes;
}

std::size_t put_chunk(std::byte* out, const Frame& chunk, std::size_t length) {
  put_frame_head(out, FrameType::kChunk, length);
  store8(out + 1, chunk.kind);
  store32(out + 4, chunk.id);
  store64(out + 8, chunk.tag);
  store64(out + 16, chunk.total);
  store64(out + 24, chunk.offset);
  return kChunkBytes;
}

std::size_t put_bulk(std::byte* out, const Frame& chunk) {
  store16(out, static_cast<std::uint16_t>(chunk.id >> 16));
  store64(out + kBulkOffsetAt, std::uint64_t{chunk.id} << kBulkOffsetBits | chunk.offset);
  return kBulkHeadBytes - kBulkHeaderBytes;
}

void put_chunks(std::byte* out, std::size_t stride, const Frame& first, const Cut& cut) {
  put_chunk(out, first, cut.each);
  std::array<std::byte, kChunkBytes> alike;
  std::memcpy(alike.data(), out, kChunkBytes);
  for (std::size_t i = 1; i < cut.count; ++i) {
    std::byte* head = out + i * stride;
    std::memcpy(head, alike.data(), kChunkBytes);
    store64(head + 24, first.offset + i * cut.each);
  }
  std::byte* last = out + (cut.count - 1) * stride;
  store16(last + 2, static_cast<std::uint16_t>(cut.last));
  store64(last + 24, offset_of_last(first, cut));
}

void put_bulks(std::byte* out, std::size_t stride, const Frame& first, const Cut& cut) {
  Frame chunk = first;
  for (std::size_t i = 0; i + 1 < cut.count; ++i) {
    put_bulk(out + i * stride, chunk);
    chunk.offset += cut.each;
  }
  chunk.offset -= cut.overlap;
  put_bulk(out + (cut.count - 1) * stride, chunk);
}

std::size_t put_grant(std::byte* out, std::uint64_t id, std::uint64_t limit) {
  put_frame_head(out, FrameType::kGrant, 0);
  store32(out + 4, static_cast<std::uint32_t>(id));
  store64(out + 8, limit);
  return kGrantBytes;
}

std::size_t put_allowance(std::byte* out, std::uint64_t limit, std::uint64_t whole_limit) {
  put_frame_head(out, FrameType::kAllowance, 0);
  store64(out + 4, limit);
  store64(out + 12, whole_limit);
  return kAllowanceBytes;
}

std::size_t put_blocked(std::byte* out, std::uint64_t limit) {
  put_frame_head(out, FrameType::kBlocked, 0);
  store64(out + 4, limit);
  return kBlockedBytes;
}

std::size_t put_envelope(std::byte* out, const Frame& envelope, std::size_t lead_bytes) {
  put_frame_head(out, FrameType::kEnvelope, lead_bytes);
  store8(out + 1, envelope.kind);
  store32(out + 4, envelope.id);
  store64(out + 8, envelope.tag);
  store64(out + 16, envelope.total);
  return kEnvelopeBytes;
}

std::size_t put_result(std::byte* out, std::uint64_t id, Result result) {
  put_frame_head(out, FrameType::kResult, 0);
  store32(out + 4, static_cast<std::uint32_t>(id));
  store32(out + 8, static_cast<std::uint32_t>(result));
  return kResultBytes;
}

std::size_t put_ping(std::byte* out) {
  put_frame_head(out, FrameType::kPing, 0);
  return kPingBytes;
}

std::size_t put_bye(std::byte* out, std::uint64_t missing, std::span<const std::uint32_t> excepted,
                    std::span<const std::uint64_t> beyond) {
  const std::size_t length = 4 * excepted.size() + 8 * beyond.size();
  PULLMAN_CHECK(excepted.size() <= kMaxByeExcepted && length <= kMaxByeData);
  put_frame_head(out, FrameType::kBye, length);
  store32(out + 4, static_cast<std::uint32_t>(missing));
  store32(out + 8, static_cast<std::uint32_t>(excepted.size()));
  std::byte* at = out + kByeBytes;
  for (const std::uint32_t id : excepted) {
    store32(at, id);
    at += 4;
  }
  for (const std::uint64_t word : beyond) {
    store64(at, word);
    at += 8;
  }
  return kByeBytes + length;
}

std::uint32_t bye_excepted(const Frame& bye, std::size_t at) {
  return load32(bye.data.data() + 4 * at);
}

std::span<const std::byte> bye_bitmap(const Frame& bye) {
  return bye.data.subspan(4 * bye.limit);
}

std::size_t put_hello(std::byte* out, std::size_t length) {
  put_frame_head(out, FrameType::kHello, length);
  return kFrameHeadBytes;
}

std::size_t put_padding(std::byte* out, std::size_t length) {
  put_frame_head(out, FrameType::kPadding, length);
  std::fill_n(out + kPaddingBytes, length, std::byte{0});
  return kPaddingBytes + length;
}

Frame chunk_head(const std::byte* at) {
  Frame head{.type = FrameType::kChunk, .data = {}};
  read_chunk_fields(at, head);
  return head;
}

bool read_chunk_elsewhere(std::span<const std::byte> bytes, std::uint64_t length, Frame& out) {
  if (bytes.size() != kChunkBytes) return false;
  if (load8(bytes.data()) != static_cast<std::uint8_t>(FrameType::kChunk)) return false;
  out = chunk_head(bytes.data());
  out.data = {bytes.data(), static_cast<std::size_t>(length)};
  return chunk_is_sane(out);
}

Frame bulk_head(const std::byte* at) {
  Frame head{.type = FrameType::kChunk, .data = {}};
  head.id = load32(at);
  head.offset = load64(at + kBulkOffsetAt) & ((std::uint64_t{1} << kBulkOffsetBits) - 1);
  return head;
}

std::size_t put_sack(std::byte* out, std::uint64_t first, std::size_t words) {
  put_frame_head(out, FrameType::kSack, words * 8);
  store32(out + 4, static_cast<std::uint32_t>(first));
  return kSackBytes;
}

void set_sack_word(std::byte* sack, std::size_t word, std::uint64_t bits) {
  store64(sack + kSackBytes + word * 8, bits);
}

std::uint64_t sack_word(std::span<const std::byte> bitmap, std::size_t word) {
  return load64(bitmap.data() + word * 8);
}

}  // namespace pullman::wire
