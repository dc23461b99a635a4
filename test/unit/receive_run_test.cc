// wire/run.h and engine/receive_run.cc, compared with the path of all other packets: packets taken
// in a run leave everything as if each had been handled alone.
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>

#include "base/random.h"
#include "base/sequence.h"
#include "list_end.h"
#include "wire/run.h"

namespace pullman {
namespace {

constexpr std::size_t kHeads = wire::kHeaderBytes + wire::kChunkBytes;
constexpr std::size_t kFlagsAt = 1, kFloorAt = 16, kCreditAt = 18, kHoldAt = 24;

// Makes the packets of one sender's stream.
struct Cutter {
  Datagram packet(std::uint64_t offset, std::size_t length) {
    header.length = static_cast<std::uint16_t>(heads() + length);
    ++header.number;
    Datagram bytes(header.length);
    chunk.offset = offset;
    if (bulk) {
      wire::PacketHeader brief = header;
      brief.type = wire::PacketType::kBulk;
      brief.flags = 0;
      wire::encode(brief, bytes.data());
      wire::put_bulk(bytes.data() + wire::kBulkHeaderBytes, chunk);
    } else {
      wire::encode(header, bytes.data());
      wire::put_chunk(bytes.data() + wire::kHeaderBytes, chunk, length);
    }
    for (std::size_t i = 0; i < length; ++i) {
      bytes[heads() + i] = static_cast<std::byte>((offset + i) * 7 + chunk.id);
    }
    return bytes;
  }
  std::size_t heads() const { return bulk ? wire::kBulkHeadBytes : kHeads; }

  bool bulk = false;  // make bulk packets
  wire::PacketHeader header{.flags = wire::kFlagAck, .to = {3, 77}, .number = 0xFFFF'FFF0};
  wire::Frame chunk{
      .type = wire::FrameType::kChunk, .id = 9, .tag = 5, .total = 100'000, .data = {}};
};

// Begins a run behind a packet that is read as the engine reads it.
bool begin(wire::ChunkRun& run, const Datagram& packet) {
  wire::PacketHeader header;
  if (wire::decode(packet, header) != wire::Verdict::kAccepted) return false;
  const std::span<const std::byte> bytes(packet);
  const bool bulk = header.type == wire::PacketType::kBulk;
  const auto frames = std::make_unique<wire::FrameList>();
  const bool good =
      bulk ? frames->read_bulk(bytes) : frames->read(bytes.subspan(wire::kHeaderBytes));
  return good && run.begin(packet, header, *frames);
}

// Two consecutive packets.
struct Two {
  explicit Two(bool bulk) {
    cutter.bulk = bulk;
    first = cutter.packet(1000, 600);
    second = cutter.packet(1600, 600);
  }
  Cutter cutter;
  Datagram first;
  Datagram second;

  bool goes_on(std::uint64_t most = 600) {
    wire::ChunkRun run;
    REQUIRE(begin(run, first));
    return !run.next(second, most).empty();
  }
};

}  // namespace

TEST_CASE("a run continues with the next number and the next bytes, across the wrap") {
  Cutter cutter;
  cutter.bulk = GENERATE(false, true);
  wire::ChunkRun run;
  REQUIRE(begin(run, cutter.packet(0, 600)));

  for (std::uint64_t offset = 600; offset < 60'000; offset += 600) {
    const Datagram packet = cutter.packet(offset, 600);
    const auto data = run.next(packet, 600);
    REQUIRE(data.size() == 600);
    REQUIRE(data.data() == packet.data() + cutter.heads());
    REQUIRE(run.last().number == cutter.header.number);
  }
  CHECK(run.next(cutter.packet(60'000, 17), 600).size() == 17);
}

TEST_CASE("a run of CHUNKs begins with a packet of one CHUNK, with an ack and no checksum") {
  Cutter cutter;
  wire::ChunkRun run;
  Datagram packet = cutter.packet(0, 600);

  SECTION("another type of packet") {
    packet[0] = std::byte{0x12};
  }
  SECTION("no ack") {
    packet[1] = std::byte{0};
  }
  SECTION("a checksum") {
    packet[1] |= std::byte{wire::kFlagChecksum};
  }
  SECTION("another frame") {
    packet[wire::kHeaderBytes] = std::byte{1};
  }
  SECTION("a second frame") {
    packet[wire::kHeaderBytes + 3] = std::byte{600 - 256 * 2 - wire::kPingBytes};
    std::memset(packet.data() + packet.size() - wire::kPingBytes, 0, wire::kPingBytes);
    packet[packet.size() - wire::kPingBytes] = std::byte{7};
  }
  SECTION("a head and no data") {
    packet.resize(kHeads);
  }
  CHECK_FALSE(begin(run, packet));
}

TEST_CASE("a run of bulk packets begins with a well-formed one") {
  Cutter cutter;
  cutter.bulk = true;
  Datagram packet = cutter.packet(0, 1);
  wire::ChunkRun run;
  CHECK(begin(run, packet));

  SECTION("a head and no data") {
    packet.pop_back();
  }
  SECTION("flags") {
    packet[1] = std::byte{wire::kFlagAck};
  }
  SECTION("bytes beyond any message") {
    packet[22] = std::byte{0x80};
  }
  CHECK_FALSE(begin(run, packet));
}

TEST_CASE("a run ends at a packet that differs in any byte that counts") {
  const bool bulk = GENERATE(false, true);
  for (std::size_t at = 0; at < Two(bulk).cutter.heads(); ++at) {
    const bool floor = at == kFloorAt || at == kFloorAt + 1;
    const bool hold = !bulk && (at == kHoldAt || at == kHoldAt + 1);
    if (floor || hold) continue;
    for (unsigned bit = 0; bit < 8; ++bit) {
      if (at == kFlagsAt && 1u << bit == wire::kFlagAckSoon) continue;
      CAPTURE(bulk, at, bit);
      Two two(bulk);
      two.second[at] ^= std::byte{static_cast<std::uint8_t>(1u << bit)};
      CHECK_FALSE(two.goes_on());
    }
  }
}

TEST_CASE("a run continues with and behind a packet that asks for its ACK, and remembers that") {
  Cutter cutter;
  cutter.bulk = GENERATE(false, true);
  const int asks = GENERATE(0, 1, 2);
  CAPTURE(cutter.bulk, asks);
  std::vector<Datagram> packets;
  for (int i = 0; i < 3; ++i) {
    packets.push_back(cutter.packet(600u * static_cast<unsigned>(i), 600));
    if (i == asks) wire::set_flag(packets.back().data(), wire::kFlagAckSoon);
  }

  wire::ChunkRun run;
  REQUIRE(begin(run, packets[0]));
  for (int i = 0; i < 3; ++i) {
    if (i > 0) REQUIRE(run.next(packets[static_cast<std::size_t>(i)], 600).size() == 600);
    CHECK(run.last().has(wire::kFlagAckSoon) == (i >= asks));
  }
}

TEST_CASE("a run ends at a length that is not the datagram's") {
  Two two(GENERATE(false, true));
  REQUIRE(two.goes_on());
  SECTION("cut") {
    two.second.resize(two.second.size() - 1);
  }
  SECTION("cut within the head") {
    two.second.resize(two.cutter.heads() - 1);
  }
  SECTION("empty") {
    two.second.clear();
  }
  SECTION("longer") {
    two.second.resize(two.second.size() + 1);
  }
  SECTION("longer by all that the field can hold") {
    two.second.resize(two.second.size() + 65536);
  }
  CHECK_FALSE(two.goes_on(1'000'000));
}

TEST_CASE("a run of one form does not continue in the other") {
  for (const bool bulk : {false, true}) {
    Two two(bulk);
    --two.cutter.header.number;
    two.cutter.bulk = !bulk;
    two.second = two.cutter.packet(1600, 600);
    CHECK_FALSE(two.goes_on());
  }
}

TEST_CASE("a run takes no more bytes than its user wants") {
  Two two(GENERATE(false, true));
  CHECK(two.goes_on(600));
  CHECK_FALSE(two.goes_on(599));
}

TEST_CASE("within a run the hold time may vary, and the floor may rise but not fall") {
  const bool bulk = GENERATE(false, true);
  Two two(bulk);
  const auto set_floor = [](Datagram& packet, unsigned distance) {
    packet[kFloorAt] = static_cast<std::byte>(distance >> 8);
    packet[kFloorAt + 1] = static_cast<std::byte>(distance);
  };
  if (!bulk) two.second[kHoldAt] ^= std::byte{0xFF};
  CHECK(two.goes_on());
  set_floor(two.first, 40);
  set_floor(two.second, 41);
  CHECK(two.goes_on());
  set_floor(two.second, 3);
  CHECK(two.goes_on());
  set_floor(two.second, 42);
  CHECK_FALSE(two.goes_on());
  set_floor(two.first, 4095);
  set_floor(two.second, 4096);
  CHECK_FALSE(two.goes_on());
}

namespace {

constexpr std::size_t kData = 1408;
constexpr Tag kRunTag = 5;
constexpr std::size_t kEager = 8192;

Config config_for_runs() {
  Config config;
  config.max_peers = 4;
  config.eager_bytes = kEager;
  config.unexpected_bytes = 4 * 48 * 1024;  // so little that ALLOWANCEs are frequent
  return config;
}

struct End : ListEnd {
  End(std::uint8_t host, std::uint64_t seed)
      : ListEnd(host, seed, config_for_runs(), kHeads + kData) {}
};

// One sender and two equal receivers of the same packets. One of these gets noise between any two
// packets of a batch, so that it never takes a run.
class Twins {
 public:
  explicit Twins(std::uint64_t seed)
      : random_(seed), sender_(1, seed), batched_(2, seed + 1), single_(2, seed + 1) {
    const auto peer = sender_.engine->connect(now_, batched_.engine->address()).peer;
    for (int i = 0; i < 1000; ++i) meet();
    REQUIRE(sender_.engine->inspector().peer_state(peer) == PeerState::kConnected);
    REQUIRE(batched_.engine->inspector().stats().peers_connected == 1);
    cutter_.chunk.tag = kRunTag;
  }

  // Checks that the two are alike in all that can be observed.
  void compare() {
    REQUIRE(batched_.command->sent == single_.command->sent);
    REQUIRE(batched_.data->sent == single_.data->sent);
    hear();
    const Stats a = batched_.engine->inspector().stats();
    const Stats b = single_.engine->inspector().stats();
    REQUIRE(a.packets_received == b.packets_received);
    REQUIRE(a.duplicate_packets == b.duplicate_packets);
    REQUIRE(a.messages_received == b.messages_received);
    REQUIRE(a.bytes_received == b.bytes_received);
    REQUIRE(a.acks_sent == b.acks_sent);
    REQUIRE(a.unexpected_bytes == b.unexpected_bytes);
    for (std::size_t i = 0; i < a.dropped_by_reason.size(); ++i) {
      if (i == static_cast<std::size_t>(wire::Verdict::kTooShort)) continue;
      REQUIRE(a.dropped_by_reason[i] == b.dropped_by_reason[i]);
    }
    REQUIRE(batched_.engine->inspector().audit().receives_posted ==
            single_.engine->inspector().audit().receives_posted);
    REQUIRE(batched_.engine->next_deadline() == single_.engine->next_deadline());
    for (const auto& both : receives_) {
      REQUIRE(both->a.request.status() == both->b.request.status());
      REQUIRE(both->a.request.length() == both->b.request.length());
      REQUIRE(both->a.buffer == both->b.buffer);
    }
  }

  void post(std::size_t size) {
    receives_.push_back(std::make_unique<Both>());
    for (auto [end, one] :
         {std::pair{&batched_, &receives_.back()->a}, std::pair{&single_, &receives_.back()->b}}) {
      one->buffer.resize(size);
      end->engine->matching().receive(now_, kAnyPeer, kRunTag, 0, one->buffer, one->request);
    }
  }

  // Delivers the packets at once and gives both a few turns.
  void deliver(const std::vector<Datagram>& batch) {
    for (const Datagram& packet : batch) {
      if (&packet != &batch.front()) single_.data->arriving.push_back(Datagram(1));
      batched_.data->arriving.push_back(packet);
      single_.data->arriving.push_back(packet);
    }
    for (int turn = 0; turn < 3; ++turn) {
      batched_.engine->progress(now_);
      single_.engine->progress(now_);
      now_ += std::chrono::nanoseconds(random_.below(40'000));
    }
    REQUIRE(single_.data->arriving.empty());
  }

  Random& random() { return random_; }
  // The sender's next packet is like this one, its number one more.
  Cutter& cutter() { return cutter_; }
  std::uint64_t messages() const { return batched_.engine->inspector().stats().messages_received; }

 private:
  struct One {
    std::vector<std::byte> buffer;
    Request request;
  };
  struct Both {
    One a;
    One b;
  };

  // Gives everyone a turn; both receivers get the sender's packets, and it those of one of them.
  void meet() {
    for (End* end : {&sender_, &batched_, &single_}) end->engine->progress(now_);
    now_ += std::chrono::microseconds(10);
    for (auto port : {&End::command, &End::data}) {
      for (const Datagram& packet : (sender_.*port)->sent) {
        follow(packet);
        (batched_.*port)->arriving.push_back(packet);
        (single_.*port)->arriving.push_back(packet);
      }
      (sender_.*port)->sent.clear();
      for (const Datagram& packet : (batched_.*port)->sent) {
        (sender_.*port)->arriving.push_back(packet);
      }
      REQUIRE((batched_.*port)->sent == (single_.*port)->sent);
    }
    hear();
  }
  // The cutter continues from the sender's last packet.
  void follow(const Datagram& packet) {
    wire::PacketHeader header;
    REQUIRE(wire::decode(packet, header) == wire::Verdict::kAccepted);
    const bool is_hello = header.type == wire::PacketType::kHello;
    if (header.type == wire::PacketType::kControl) header.number = cutter_.header.number;
    header.type = wire::PacketType::kSequenced;
    cutter_.header = header;
    if (!is_hello) return;
    wire::FrameReader frames(std::span<const std::byte>(packet).subspan(wire::kHeaderBytes));
    wire::Frame hello;
    REQUIRE(frames.next(hello));
    cutter_.chunk.id = low32(wire::decode_hello(hello.data)->first_message);
  }
  // Lets the packets to come acknowledge what the twins sent.
  void hear() {
    for (auto port : {&End::command, &End::data}) {
      for (const Datagram& packet : (batched_.*port)->sent) {
        wire::PacketHeader header;
        REQUIRE(wire::decode(packet, header) == wire::Verdict::kAccepted);
        if (header.type != wire::PacketType::kSequenced) continue;
        cutter_.header.cumulative = header.number + 1;
      }
      (batched_.*port)->sent.clear();
      (single_.*port)->sent.clear();
    }
  }

  Instant now_{std::chrono::seconds(1)};
  Random random_;
  std::vector<std::unique_ptr<Both>> receives_;  // outlive the engines
  End sender_;
  End batched_;
  End single_;
  Cutter cutter_;
};

// Sends messages to the twins, and disturbs some packets.
class Disturbed {
 public:
  Disturbed(Twins& twins, std::uint64_t percent)
      : twins_(twins), random_(twins.random()), percent_(percent) {}

  void send_message() {
    auto& chunk = twins_.cutter().chunk;
    chunk.total = 1 + random_.below(random_.below(2) == 0 ? 100'000 : 10'000);
    const std::uint64_t size = random_.below(3) == 0 ? random_.below(2 * chunk.total) : chunk.total;
    const bool late = random_.below(8) == 0;
    const std::uint64_t unasked = std::min<std::uint64_t>(chunk.total, kEager);
    const std::uint64_t granted = std::max(unasked, std::min(chunk.total, size));
    if (!late) twins_.post(size);
    wanted_ = late ? unasked : granted;
    disturbed_ = false;
    bulk_ = random_.below(2) == 0;
    pass(percent_);
    if (late) twins_.post(size);
    wanted_ = granted;
    if (late || disturbed_) pass(0);  // retransmit all of it
    ++chunk.id;
  }

 private:
  void pass(std::uint64_t percent) {
    auto& header = twins_.cutter().header;
    floor_ = header.number + 1;  // settles what is missing
    std::vector<Datagram> batch;
    std::size_t most = 2 + random_.below(40);
    for (std::uint64_t offset = 0; offset < wanted_;) {
      twins_.cutter().bulk = bulk_ && offset >= kEager;
      std::size_t length = std::min<std::uint64_t>(kData, wanted_ - offset);
      if (random_.below(100) < percent / 2) length = 1 + random_.below(length);
      if (random_.below(10) == 0) floor_ += random_.below(header.number + 2 - floor_);
      header.floor_distance = static_cast<std::uint16_t>(header.number + 1 - floor_);
      batch.push_back(twins_.cutter().packet(offset, length));
      offset += length;
      if (random_.below(100) < percent) disturb(batch);
      if (batch.size() < most && offset < wanted_) continue;
      twins_.deliver(batch);
      twins_.compare();
      batch.clear();
      most = 2 + random_.below(40);
    }
  }

  // Loses, doubles, delays or damages the batch's last packet, or makes it another's.
  void disturb(std::vector<Datagram>& batch) {
    disturbed_ = true;
    Datagram& last = batch.back();
    switch (random_.below(9)) {
      case 0:
        if (batch.size() > 1) batch.pop_back();
        break;
      case 1:
        batch.push_back(Datagram(last));
        break;
      case 2:
        if (batch.size() > 1) std::swap(last, batch[batch.size() - 2]);
        break;
      case 3:
        last.resize(last.size() - 1 - random_.below(last.size() - 1));
        break;
      case 4:
        last[random_.below(twins_.cutter().heads())] ^=
            static_cast<std::byte>(1u << random_.below(8));
        break;
      case 5:  // bytes that came before, or beyond a gap
        last = again([&](wire::Frame& chunk) { chunk.offset += random_.below(200) - 100; });
        break;
      case 6:
        last = again([](wire::Frame& chunk) { ++chunk.id; });
        break;
      case 7:
        last = again([](wire::Frame& chunk) { ++chunk.total; });
        break;
      case 8:
        last[kCreditAt + 1] ^= std::byte{1};
        break;
    }
  }
  // Returns the last packet with its chunk changed.
  template <typename Change>
  Datagram again(Change change) {
    Cutter cutter = twins_.cutter();
    const std::size_t length = cutter.header.length - cutter.heads();
    --cutter.header.number;
    change(cutter.chunk);
    return cutter.packet(cutter.chunk.offset, length);
  }

  Twins& twins_;
  Random& random_;
  const std::uint64_t percent_;
  std::uint64_t wanted_ = 0;
  std::uint32_t floor_ = 0;
  bool disturbed_ = false;
  bool bulk_ = false;  // the granted part of this message leaves as bulk
};

}  // namespace

TEST_CASE("packets taken in a run leave everything as if each had been handled alone") {
  std::uint64_t messages = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    const std::uint64_t percent = seed % 4 * 4;
    Twins twins(seed);
    Disturbed disturbed(twins, percent);
    for (int message = 0; message < 40; ++message) disturbed.send_message();
    messages += twins.messages();
    if (percent == 0) CHECK(twins.messages() == 40);
  }
  CHECK(messages > 1200);
}

}  // namespace pullman
