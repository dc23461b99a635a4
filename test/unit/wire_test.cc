// lib/wire: every byte where wire.md says, every malformed packet refused.
#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "wire/bytes.h"
#include "wire/frame.h"
#include "wire/header.h"
#include "wire/hello.h"

namespace pullman::wire {
namespace {

PacketHeader some_header() {
  PacketHeader header;
  header.type = PacketType::kSequenced;
  header.flags = kFlagAck;
  header.length = kHeaderBytes;
  header.to = {0x01020304, 0x05060708};
  header.number = 0x090A0B0C;
  header.floor_distance = 0x0D0E;
  header.credit = 0x0F10;
  header.cumulative = 0x11121314;
  header.hold = 0x1516;
  header.late = 0x1718;
  return header;
}

std::vector<std::byte> encoded(const PacketHeader& header, std::size_t size = kHeaderBytes) {
  std::vector<std::byte> bytes(size);
  encode(header, bytes.data());
  return bytes;
}

Hello some_hello() {
  Hello hello;
  hello.epoch = 0x1122334455667788;
  hello.reply_to = {1, 2};
  hello.first_number = std::uint64_t{1} << 40;
  hello.first_message = std::uint64_t{1} << 41;
  hello.allowance = 4096;
  hello.eager_bytes = 1024;
  hello.credit = 92;
  hello.host = 0xA1A2A3A4A5A6A7A8;
  hello.nic_count = 2;
  hello.called = {.kind = 4, .length = 6, .bytes = {std::byte{10}}};
  hello.nics[0] = {.command_packet_bytes = 816,
                   .data_packet_bytes = 1472,
                   .mbps = 25000,
                   .command = hello.called,
                   .data = hello.called};
  hello.nics[1] = {.command_packet_bytes = 816,
                   .data_packet_bytes = 8972,
                   .mbps = 0,
                   .command = {.kind = 6, .length = 22, .bytes = {}},
                   .data = {.kind = 255, .length = 33, .bytes = {}}};
  return hello;
}

std::vector<std::byte> encoded(const Hello& hello) {
  std::vector<std::byte> bytes(encoded_bytes(hello));
  encode(hello, bytes.data());
  return bytes;
}

}  // namespace

TEST_CASE("the header's fields lie where wire.md 2.1 says, in network byte order") {
  const auto bytes = encoded(some_header());

  CHECK(bytes[0] == std::byte{0x11});
  CHECK(bytes[1] == std::byte{kFlagAck});
  CHECK(bytes[3] == std::byte{32});
  for (std::size_t i = 4; i < 28; ++i) CHECK(bytes[i] == static_cast<std::byte>(i - 3));
}

TEST_CASE("a header reads as it was written") {
  PacketHeader read;
  REQUIRE(decode(encoded(some_header()), read) == Verdict::kAccepted);
  CHECK(read.to == some_header().to);
  CHECK(read.number == some_header().number);
  CHECK(read.floor_distance == some_header().floor_distance);
  CHECK(read.credit == some_header().credit);
  CHECK(read.cumulative == some_header().cumulative);
  CHECK(read.hold == some_header().hold);
  CHECK(read.late == some_header().late);
  CHECK(read.has(kFlagAck));
}

TEST_CASE("a malformed header is refused with the verdict of wire.md 1.3") {
  auto bytes = encoded(some_header());
  PacketHeader read;

  SECTION("too short") {
    bytes.pop_back();
    CHECK(decode(bytes, read) == Verdict::kTooShort);
    CHECK(decode({}, read) == Verdict::kTooShort);
  }
  SECTION("another version") {
    bytes[0] = std::byte{0x21};
    CHECK(decode(bytes, read) == Verdict::kBadVersion);
  }
  SECTION("unknown type") {
    for (int type : {0, 7, 15}) {
      bytes[0] = static_cast<std::byte>(0x10 | type);
      CHECK(decode(bytes, read) == Verdict::kBadType);
    }
  }
  SECTION("protected otherwise than here, wire.md 12.1") {
    for (const Protection theirs :
         {Protection::kOff, Protection::kAuthenticate, Protection::kEncrypt}) {
      bytes[1] = static_cast<std::byte>(theirs);
      for (const Protection ours :
           {Protection::kOff, Protection::kAuthenticate, Protection::kEncrypt}) {
        CHECK(decode(bytes, read, ours) ==
              (theirs == ours ? Verdict::kAccepted : Verdict::kOtherProtection));
      }
    }
  }
  SECTION("protected in two ways") {
    bytes[1] = std::byte{kProtectionMask};
    for (const Protection ours :
         {Protection::kOff, Protection::kAuthenticate, Protection::kEncrypt}) {
      CHECK(decode(bytes, read, ours) == Verdict::kBadReserved);
    }
  }
  SECTION("a request for an ACK on a type that is never acked, wire.md 2.3") {
    set_flag(bytes.data(), kFlagAckSoon);
    CHECK(decode(bytes, read) == Verdict::kAccepted);
    CHECK(read.has(kFlagAckSoon));
    for (int type : {2, 3, 4, 6}) {
      bytes[0] = static_cast<std::byte>(0x10 | type);
      CHECK(decode(bytes, read) == Verdict::kBadReserved);
    }
  }
  SECTION("a length that is not the datagram's") {
    bytes.push_back({});
    CHECK(decode(bytes, read) == Verdict::kBadLength);
  }
  SECTION("a floor a whole window below, wire.md 3.2") {
    bytes[16] = std::byte{0x10};
    bytes[17] = std::byte{0x00};
    CHECK(decode(bytes, read) == Verdict::kOutsideWindow);
  }
}

namespace {

// A bulk packet with 5 bytes of data.
std::vector<std::byte> some_bulk() {
  PacketHeader header = some_header();
  header.type = PacketType::kBulk;
  header.flags = 0;
  header.length = kBulkHeadBytes + 5;
  std::vector<std::byte> bytes(header.length);
  encode(header, bytes.data());
  const Frame chunk{
      .type = FrameType::kChunk, .id = 0x0F101112, .offset = 0x131415161718, .data = {}};
  REQUIRE(put_bulk(bytes.data() + kBulkHeaderBytes, chunk) + kBulkHeaderBytes == kBulkHeadBytes);
  return bytes;
}

}  // namespace

TEST_CASE("a bulk packet's fields lie where wire.md 2.11 says, and read as they were written") {
  const auto bytes = some_bulk();

  CHECK(bytes[0] == std::byte{0x15});
  CHECK(bytes[1] == std::byte{0});
  CHECK(bytes[2] == std::byte{0});
  CHECK(bytes[3] == std::byte{33});
  for (std::size_t i = 4; i < 28; ++i) CHECK(bytes[i] == static_cast<std::byte>(i - 3));

  PacketHeader read;
  REQUIRE(decode(bytes, read) == Verdict::kAccepted);
  CHECK(read.type == PacketType::kBulk);
  CHECK_FALSE(read.has(kFlagAck));
  CHECK(read.length == bytes.size());
  CHECK(read.to == some_header().to);
  CHECK(read.number == some_header().number);
  CHECK(read.floor_distance == some_header().floor_distance);
  FrameList frames;
  REQUIRE(frames.read_bulk(bytes));
  const Frame* chunk = frames.next();
  REQUIRE(chunk != nullptr);
  CHECK(chunk->type == FrameType::kChunk);
  CHECK(chunk->id == 0x0F101112);
  CHECK(chunk->offset == 0x131415161718);
  CHECK(chunk->total == 0);
  CHECK(chunk->data.data() == bytes.data() + kBulkHeadBytes);
  CHECK(chunk->data.size() == 5);
  CHECK(frames.next() == nullptr);
}

TEST_CASE("a malformed bulk packet is refused with the verdict of wire.md 1.3") {
  auto bytes = some_bulk();
  PacketHeader read;
  Frame chunk;

  SECTION("no data") {
    for (std::size_t size : {0u, 1u, 16u, 28u}) {
      bytes.resize(size);
      CHECK(decode(bytes, read) == Verdict::kTooShort);
    }
  }
  SECTION("another version") {
    bytes[0] = std::byte{0x25};
    CHECK(decode(bytes, read) == Verdict::kBadVersion);
  }
  SECTION("any flag but the rail and the request for an ACK, also an ack's and a checksum's") {
    for (unsigned bit : {0u, 1u}) {
      bytes[1] = static_cast<std::byte>(1u << bit);
      CHECK(decode(bytes, read) == Verdict::kBadReserved);
    }
    bytes[1] = static_cast<std::byte>(Protection::kEncrypt);
    CHECK(decode(bytes, read) == Verdict::kOtherProtection);
    bytes[1] = static_cast<std::byte>(kRailMask << kRailShift);
    CHECK(decode(bytes, read) == Verdict::kAccepted);
    CHECK(read.rail == kRailMask);
    CHECK_FALSE(read.has(kFlagAckSoon));
    set_flag(bytes.data(), kFlagAckSoon);
    CHECK(decode(bytes, read) == Verdict::kAccepted);
    CHECK(read.rail == kRailMask);
    CHECK(read.has(kFlagAckSoon));
  }
  SECTION("a length that is not the datagram's") {
    bytes.push_back({});
    CHECK(decode(bytes, read) == Verdict::kBadLength);
    bytes.resize(bytes.size() - 2);
    CHECK(decode(bytes, read) == Verdict::kBadLength);
  }
  SECTION("a floor a whole window below, wire.md 3.2") {
    bytes[16] = std::byte{0x10};
    bytes[17] = std::byte{0x00};
    CHECK(decode(bytes, read) == Verdict::kOutsideWindow);
  }
  SECTION("bytes beyond the longest message, wire.md 4.4") {
    const auto set_offset = [&](std::uint64_t offset) {
      chunk.offset = offset;
      put_bulk(bytes.data() + kBulkHeaderBytes, chunk);
    };
    set_offset(kMaxMessageBytes - 5);
    CHECK(read_bulk(bytes, chunk));
    for (std::uint64_t offset :
         {kMaxMessageBytes - 4, kMaxMessageBytes, 2 * kMaxMessageBytes - 1}) {
      set_offset(offset);
      CHECK_FALSE(read_bulk(bytes, chunk));
    }
  }
}

TEST_CASE("the heads of a run equal those of its packets one by one") {
  const Cut cut{.count = 5, .each = 700, .last = 700, .overlap = 90};
  const Frame first{
      .type = FrameType::kChunk, .id = 7, .tag = 8, .total = 9000, .offset = 1000, .data = {}};
  std::array<std::byte, 5 * 64> chunks{};
  std::array<std::byte, 5 * 64> bulks{};
  put_chunks(chunks.data(), 64, first, cut);
  put_bulks(bulks.data(), 64, first, cut);
  for (std::size_t i = 0; i < 5; ++i) {
    const std::uint64_t offset = 1000 + 700 * i - (i == 4 ? 90 : 0);
    CHECK(chunk_head(&chunks[64 * i]).offset == offset);
    CHECK(chunk_head(&chunks[64 * i]).total == 9000);
    CHECK(bulk_head(&bulks[64 * i]).offset == offset);
    CHECK(bulk_head(&bulks[64 * i]).id == 7);
  }
}

TEST_CASE("credit and poll gap share two bytes, wire.md 2.13") {
  auto header = some_header();
  header.credit = kMaxCredit;
  header.poll_gap = static_cast<PollGap>(9);
  PacketHeader read;
  REQUIRE(decode(encoded(header), read) == Verdict::kAccepted);
  CHECK(read.credit == kMaxCredit);
  CHECK(read.poll_gap == header.poll_gap);
}

TEST_CASE("a poll gap is rounded up to a power of two, and 134 ms at most") {
  const auto told = [](std::uint64_t ns) { return nanoseconds(poll_gap_of(ns)); };
  CHECK(told(0) == 0);
  CHECK(told(4095) == 0);
  CHECK(told(4096) == 8192);
  CHECK(told(8191) == 8192);
  CHECK(told(600'000) == 1'048'576);
  CHECK(told(std::uint64_t{1} << 40) == std::uint64_t{1} << 27);
}

TEST_CASE("the checksum of a sealed packet covers every byte, wire.md 2.9") {
  auto header = some_header();
  header.length = 40;
  auto bytes = encoded(header, 40);
  std::memset(bytes.data() + 32, 0x5A, 8);
  seal({bytes.data(), 36}, {bytes.data() + 36, 4});
  PacketHeader read;
  REQUIRE(decode(bytes, read) == Verdict::kAccepted);
  CHECK(read.has(kFlagChecksum));
  CHECK(checksum_holds(bytes, read));

  for (std::size_t i = 4; i < bytes.size(); ++i) {
    auto damaged = bytes;
    damaged[i] ^= std::byte{0x10};
    PacketHeader header_read;
    if (decode(damaged, header_read) != Verdict::kAccepted) continue;
    CHECK_FALSE(checksum_holds(damaged, header_read));
  }
}

TEST_CASE("frames follow each other and read as they were written, wire.md 4.1") {
  std::vector<std::byte> body(512);
  std::byte* out = body.data();
  out += put_message(out, 0x1'0000'0007, 0xABCD, 3);
  std::memcpy(out, "abc", 3);
  out += 3;
  out += put_chunk(out,
                   {.type = FrameType::kChunk,
                    .id = 8,
                    .tag = 9,
                    .total = 100,
                    .offset = 40,
                    .limit = 0,
                    .data = {}},
                   2);
  out += 2;
  out += put_grant(out, 10, 1 << 20);
  out += put_allowance(out, 1 << 21, 1 << 20);
  out += put_blocked(out, 1 << 22);
  out += put_envelope(out,
                      {.type = FrameType::kEnvelope,
                       .kind = kImmediateOfKind,
                       .id = 11,
                       .tag = 12,
                       .total = 5000,
                       .data = {}},
                      kImmediateBytes);
  out += kImmediateBytes;
  out += put_ping(out);
  const std::array<std::uint64_t, 2> beyond{0xF0, 1};
  const std::array<std::uint32_t, 3> excepted{0xFFFFFFF0, 3, 12};
  out += put_bye(out, 13, excepted, beyond);
  out += put_padding(out, 77);
  std::byte* sack = out;
  out += put_sack(out, 64, 1) + 8;
  set_sack_word(sack, 0, 0xF0);
  body.resize(static_cast<std::size_t>(out - body.data()));

  REQUIRE(well_formed(body));
  FrameReader reader(body);
  Frame frame;
  REQUIRE(reader.next(frame));
  CHECK((frame.type == FrameType::kMessage && frame.id == 7 && frame.tag == 0xABCD));
  CHECK(std::memcmp(frame.data.data(), "abc", 3) == 0);
  REQUIRE(reader.next(frame));
  CHECK((frame.type == FrameType::kChunk && frame.total == 100 && frame.offset == 40));
  CHECK(frame.data.size() == 2);
  REQUIRE(reader.next(frame));
  CHECK((frame.type == FrameType::kGrant && frame.id == 10 && frame.limit == 1 << 20));
  REQUIRE(reader.next(frame));
  CHECK((frame.type == FrameType::kAllowance && frame.limit == 1 << 21 && frame.total == 1 << 20));
  REQUIRE(reader.next(frame));
  CHECK((frame.type == FrameType::kBlocked && frame.limit == 1 << 22));
  REQUIRE(reader.next(frame));
  CHECK((frame.type == FrameType::kEnvelope && frame.kind == kImmediateOfKind && frame.id == 11));
  CHECK((frame.tag == 12 && frame.total == 5000 && frame.data.size() == kImmediateBytes));
  REQUIRE(reader.next(frame));
  CHECK(frame.type == FrameType::kPing);
  REQUIRE(reader.next(frame));
  CHECK((frame.type == FrameType::kBye && frame.id == 13 && frame.limit == 3));
  CHECK((bye_excepted(frame, 0) == 0xFFFFFFF0 && bye_excepted(frame, 2) == 12));
  const std::span<const std::byte> bitmap = bye_bitmap(frame);
  CHECK((bitmap.size() == 16 && sack_word(bitmap, 0) == 0xF0 && sack_word(bitmap, 1) == 1));
  REQUIRE(reader.next(frame));
  CHECK((frame.type == FrameType::kPadding && frame.data.size() == 77));
  REQUIRE(reader.next(frame));
  CHECK((frame.type == FrameType::kSack && frame.id == 64 && sack_word(frame.data, 0) == 0xF0));
  CHECK_FALSE(reader.next(frame));
  CHECK(reader.ok());
}

TEST_CASE(
    "a BYE excepts ids in order and has whole words, the last of them not zero, wire.md 4.9") {
  constexpr std::uint32_t kMissing = 10;
  const auto is_sane = [](std::initializer_list<std::uint32_t> excepted, std::size_t length,
                          std::uint8_t last, std::uint32_t count_more = 0) {
    const std::size_t data = 4 * excepted.size() + length;
    std::vector<std::byte> body(kByeBytes + data);
    put_frame_head(body.data(), FrameType::kBye, data);
    store32(body.data() + 4, kMissing);
    store32(body.data() + 8, static_cast<std::uint32_t>(excepted.size()) + count_more);
    std::byte* at = body.data() + kByeBytes;
    for (const std::uint32_t id : excepted) store32(std::exchange(at, at + 4), id);
    if (length != 0) body.back() = static_cast<std::byte>(last);
    return well_formed(body);
  };

  CHECK(is_sane({}, 0, 0));
  CHECK(is_sane({}, 8, 1));
  CHECK(is_sane({}, kMaxByeData, 1));
  CHECK(is_sane({9}, 0, 0));
  CHECK(is_sane({0x80000010, 0xFFFFFFFF, 3, 9}, 16, 1));
  CHECK_FALSE(is_sane({}, 8, 0));
  CHECK_FALSE(is_sane({}, 7, 1));
  CHECK_FALSE(is_sane({}, 9, 1));
  CHECK_FALSE(is_sane({}, kMaxByeData + 8, 1));
  CHECK_FALSE(is_sane({9}, kMaxByeData, 1));
  CHECK_FALSE(is_sane({kMissing}, 0, 0));
  CHECK_FALSE(is_sane({11}, 0, 0));
  CHECK_FALSE(is_sane({9, 3}, 0, 0));
  CHECK_FALSE(is_sane({9, 9}, 0, 0));
  CHECK_FALSE(is_sane({}, 0, 0, 1));
  CHECK_FALSE(is_sane({}, 0, 0, 0xFFFFFFFF));
  CHECK_FALSE(is_sane({}, 320, 1, kMaxByeExcepted + 1));
}

TEST_CASE("a body cut anywhere inside a frame is not well-formed") {
  std::vector<std::byte> body(kMessageBytes + 5);
  put_message(body.data(), 1, 2, 5);
  REQUIRE(well_formed(body));
  for (std::size_t size = 1; size < body.size(); ++size) {
    CHECK_FALSE(well_formed({body.data(), size}));
  }
}

TEST_CASE("an envelope carries the whole lead, and more bytes are to follow, wire.md 4.12") {
  const auto is_sane = [](std::uint8_t kind, std::uint64_t total, std::size_t carried) {
    std::vector<std::byte> body(kEnvelopeBytes + carried);
    put_envelope(body.data(),
                 {.type = FrameType::kEnvelope, .kind = kind, .id = 1, .total = total, .data = {}},
                 carried);
    return well_formed(body);
  };
  const auto of_class = [](Class what) {
    return static_cast<std::uint8_t>(static_cast<unsigned>(what) << 4);
  };

  CHECK(is_sane(0, 25, 0));
  CHECK_FALSE(is_sane(0, 24, 0));
  CHECK(is_sane(0, kMaxMessageBytes, 0));
  CHECK_FALSE(is_sane(0, kMaxMessageBytes + 1, 0));
  CHECK_FALSE(is_sane(0, 0, 0));
  CHECK_FALSE(is_sane(0, 10, 1));
  CHECK(is_sane(kImmediateOfKind, 25, 8));
  CHECK_FALSE(is_sane(kImmediateOfKind, 8, 8));
  CHECK_FALSE(is_sane(kImmediateOfKind, 9, 7));
  CHECK(is_sane(of_class(Class::kPut), 2049, 8));
  CHECK_FALSE(is_sane(of_class(Class::kPut), 2048, 8));
  CHECK_FALSE(is_sane(of_class(Class::kGet), 16, 16));
  CHECK_FALSE(is_sane(of_class(Class::kAtomic), 24, 16));
  CHECK_FALSE(is_sane(of_class(Class::kAnswer), 24, 0));
}

TEST_CASE("frames that contradict themselves are not well-formed, wire.md 4.4") {
  std::vector<std::byte> body(kChunkBytes + 10);
  const auto chunk = [&](std::uint64_t total, std::uint64_t offset, std::size_t length) {
    put_chunk(body.data(),
              {.type = FrameType::kChunk,
               .id = 0,
               .tag = 0,
               .total = total,
               .offset = offset,
               .limit = 0,
               .data = {}},
              length);
    return well_formed({body.data(), kChunkBytes + length});
  };

  CHECK(chunk(10, 0, 10));
  CHECK(chunk(20, 10, 10));
  CHECK_FALSE(chunk(10, 0, 0));                                     // empty
  CHECK_FALSE(chunk(10, 1, 10));                                    // beyond the message
  CHECK_FALSE(chunk(10, 10, 1));                                    // behind its end
  CHECK_FALSE(chunk(~std::uint64_t{0}, ~std::uint64_t{0} - 4, 4));  // overflows
  CHECK_FALSE(chunk(kMaxMessageBytes + 1, 0, 10));
}

TEST_CASE("unknown frames and set reserved bytes are not well-formed") {
  std::vector<std::byte> body(kPingBytes);
  put_ping(body.data());
  REQUIRE(well_formed(body));
  body[1] = std::byte{1};
  CHECK_FALSE(well_formed(body));
  put_ping(body.data());
  for (int type : {0, 14, 255}) {
    body[0] = static_cast<std::byte>(type);
    CHECK_FALSE(well_formed(body));
  }
}

TEST_CASE("a HELLO reads as it was written, and zero padding may follow, wire.md 5.1") {
  auto bytes = encoded(some_hello());
  bytes.resize(bytes.size() + 20);

  const auto read = decode_hello(bytes);

  REQUIRE(read.has_value());
  CHECK(read->epoch == some_hello().epoch);
  CHECK(read->reply_to == some_hello().reply_to);
  CHECK(read->first_number == some_hello().first_number);
  CHECK(read->first_message == some_hello().first_message);
  CHECK(read->credit == 92);
  CHECK(read->host == some_hello().host);
  CHECK(bytes[52] == std::byte{0xA1});
  CHECK(read->called == some_hello().called);
  REQUIRE(read->nic_count == 2);
  CHECK(read->nics[0].mbps == 25000);
  CHECK(read->nics[1].data == some_hello().nics[1].data);
  bytes.back() = std::byte{1};
  CHECK_FALSE(decode_hello(bytes).has_value());
}

TEST_CASE("a HELLO cut anywhere, or with counts out of range, is refused") {
  const auto bytes = encoded(some_hello());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CHECK_FALSE(decode_hello({bytes.data(), size}).has_value());
  }
  for (auto [at, value] :
       {std::pair<std::size_t, int>{47, 0}, {47, 5}, {46, 2}, {51, 1}, {60, 9}}) {
    auto changed = bytes;
    changed[at] = static_cast<std::byte>(value);
    CHECK_FALSE(decode_hello(changed).has_value());
  }
}

TEST_CASE("a SACK has room for a window that begins within a word, and for no more, wire.md 4.7") {
  std::array<std::byte, 8 + 66 * 8> bytes{};
  for (const std::size_t words : {std::size_t{64}, std::size_t{65}}) {
    const std::size_t head = put_sack(bytes.data(), 64, words);
    CHECK(well_formed({bytes.data(), head + words * 8}));
  }

  const std::size_t head = put_sack(bytes.data(), 64, 66);
  CHECK_FALSE(well_formed({bytes.data(), head + std::size_t{66} * 8}));
}

}  // namespace pullman::wire
