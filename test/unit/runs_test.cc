// channel/run.h, and what the window, the link and the outbox do with runs: the same as with single
// packets.
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <vector>

#include "base/random.h"
#include "channel/run.h"
#include "message/tx/fragments.h"
#include "message/tx/outbox.h"
#include "reliability/link.h"

namespace pullman::reliability {
namespace {

constexpr Instant kNow{std::chrono::seconds(1)};
constexpr std::size_t kFloor = 40;
constexpr PacketNumber kFirst = (PacketNumber{1} << 32) - 100;  // the low half wraps soon

struct Sender {
  Run* add(std::uint32_t count) {
    Run* run = pool.take_run(count);
    REQUIRE(run != nullptr);
    run->payload = bytes.data();
    run->payload_bytes = 100;
    run->last_bytes = 7;
    run->peer = 3;
    for (std::uint32_t i = 0; i < count; ++i) {
      std::memset(run->head_at(i), static_cast<int>(i + 1), Packet::kSmallBytes);
    }
    window.add_run(kNow, kFloor, *run);
    return run;
  }
  void finish(Packet& packet) {
    window.remove(packet);
    pool.give_back(packet);
  }

  std::vector<std::byte> bytes = std::vector<std::byte>(10000);
  Hotel<Packet> hotel;
  WindowRings rings{1};
  channel::PacketPool pool{1024, 1472};
  WindowResources resources{hotel, rings, pool};
  SendWindow window{resources, kFirst};
};

}  // namespace

TEST_CASE("a run has a number for each chunk and is one guest of the hotel") {
  Sender sender;
  Run* run = sender.add(44);

  CHECK(sender.window.in_flight() == 44);
  CHECK(sender.window.next() == kFirst + 44);
  CHECK(sender.hotel.guests() == 1);
  CHECK(sender.pool.in_use() == 44);
  for (PacketNumber n = kFirst; n < kFirst + 44; ++n) CHECK(sender.window.find_run(n) == run);
  run->used = 30;
  CHECK(run->total_bytes() == 43 * 130 + 37);
  CHECK(sender.window.find_run(kFirst + 44) == nullptr);

  sender.window.remove_chunks(*run, run->left);
  CHECK(sender.window.in_flight() == 0);
  CHECK(sender.hotel.guests() == 0);
  CHECK(run->chunks == 44);  // all of its message's chunks are counted
  sender.pool.give_back(*run);
  CHECK(sender.pool.in_use() == 0);
}

TEST_CASE("a chunk that is looked up is split off as the packet it would have been") {
  Sender sender;
  Run* run = sender.add(5);

  Packet* third = sender.window.find(kFirst + 2);
  Packet* last = sender.window.find(kFirst + 4);

  REQUIRE(third != nullptr);
  CHECK(third->number == kFirst + 2);
  CHECK(third->sent_at == kNow);
  CHECK(third->state == PacketState::kInFlight);
  CHECK(third->due == run->due);
  CHECK(third->peer == 3);
  CHECK(third->chunks == 1);
  CHECK(third->used == Packet::kSmallBytes);
  CHECK(third->bytes[0] == std::byte{3});
  CHECK(third->payload == sender.bytes.data() + 200);
  CHECK(third->payload_bytes == 100);
  CHECK(last->payload_bytes == 7);
  CHECK(sender.window.find(kFirst + 2) == third);
  CHECK(run->chunks == 3);
  CHECK(sender.window.in_flight() == 5);
  CHECK(sender.hotel.guests() == 3);
  CHECK(sender.pool.in_use() == 5);

  sender.finish(*third);
  sender.finish(*last);
  sender.window.remove_chunks(*run, run->left);
  sender.pool.give_back(*run);
}

TEST_CASE("of a run that arrived in part the longest packet's length is known") {
  Sender sender;
  Run* run = sender.add(64);
  CHECK(run->longest_of(std::uint64_t{1} << 63) == 64 + 7);
  CHECK(run->longest_of(std::uint64_t{3} << 62) == 64 + 100);
  CHECK(run->longest_of(1) == 64 + 100);
  CHECK(run->longest_of(run->left) == 64 + 100);
  CHECK(run->left_below(kFirst) == 0);
  CHECK(run->left_below(kFirst + 1) == 1);
  CHECK(run->left_below(kFirst + 63) == run->left >> 1);
  CHECK(run->left_below(kFirst + 64) == run->left);
  CHECK(run->left_below(kFirst + 1000) == run->left);
  sender.window.remove_chunks(*run, run->left);
  sender.pool.give_back(*run);
}

TEST_CASE("the last chunk split off takes over the run's count of chunks") {
  Sender sender;
  Run* run = sender.add(6);
  sender.window.remove_chunks(*run, 0b101011);

  Packet* packet = sender.window.find(kFirst + 2);
  CHECK(packet->chunks == 1);
  CHECK(run->chunks == 5);
  Packet* last = sender.window.find(kFirst + 4);

  CHECK(last->chunks == 5);
  CHECK(sender.pool.runs_in_use() == 0);
  CHECK(sender.window.in_flight() == 2);
  sender.finish(*packet);
  sender.finish(*last);
  CHECK(sender.pool.in_use() == 0);
  CHECK(sender.hotel.guests() == 0);
}

TEST_CASE("every chunk of a run can be split off, however few packets there are") {
  Sender sender;
  sender.add(40);
  std::vector<Packet*> taken;
  while (Packet* packet = sender.pool.take(64)) taken.push_back(packet);
  CHECK(taken.size() == 1024 - 40);
  CHECK(sender.pool.take_run(4) == nullptr);

  for (PacketNumber n = kFirst; n < kFirst + 40; ++n) sender.finish(*sender.window.find(n));

  for (Packet* packet : taken) sender.pool.give_back(*packet);
  CHECK(sender.pool.in_use() == 0);
}

TEST_CASE("runs and packets leave a window in any order, and nothing of them is left") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    Sender sender;
    std::map<PacketNumber, Packet*> in_flight;  // null: it is in a run
    std::uint64_t owed = 0;
    for (int step = 0; step < 300; ++step) {
      const auto count = static_cast<std::uint32_t>(1 + random.below(64));
      if (random.below(3) == 0 && in_flight.size() + count < 600) {
        const Run* run = sender.add(count);
        owed += count;
        for (std::uint32_t i = 0; i < count; ++i) in_flight[run->number + i] = nullptr;
        continue;
      }
      for (auto n = random.below(40); n > 0 && !in_flight.empty(); --n) {
        auto at = in_flight.begin();
        std::advance(at, static_cast<long>(random.below(in_flight.size())));
        Run* run = sender.window.find_run(at->first);
        REQUIRE((run != nullptr) == (at->second == nullptr));
        if (run != nullptr && random.below(2) == 0) {
          at->second = sender.window.find(at->first);
          continue;
        }
        if (run == nullptr) {
          owed -= at->second->chunks;
          sender.finish(*at->second);
        } else {
          sender.window.remove_chunks(*run, std::uint64_t{1} << (at->first - run->number));
          if (run->left == 0) {
            owed -= run->chunks;
            sender.pool.give_back(*run);
          }
        }
        in_flight.erase(at);
      }
      REQUIRE(sender.window.in_flight() == in_flight.size());
      REQUIRE(sender.pool.in_use() == in_flight.size());
      REQUIRE(sender.hotel.guests() + sender.pool.chunks_in_runs() ==
              in_flight.size() + sender.pool.runs_in_use());
      if (!in_flight.empty()) REQUIRE(sender.window.floor() == in_flight.begin()->first);
    }
    for (const auto& [number, packet] : in_flight) {
      Packet& found = *sender.window.find(number);
      owed -= found.chunks;
      sender.finish(found);
    }
    CHECK(owed == 0);
    CHECK(sender.pool.in_use() == 0);
    CHECK(sender.hotel.guests() == 0);
  }
}

namespace {

using Heads = message::Outbox::Heads;

// The sending end, from message to wire.
struct End {
  End() {
    outbox.handle_hello(1472, 1 << 30, 65'536);
    link.handle_hello(77, 4096);
    wire::PacketHeader arrived;  // so that an ACK is piggybacked
    arrived.number = 77;
    link.handle_arrival(kNow, arrived);
  }
  void post(std::span<const std::byte> head, std::span<const std::byte> payload) {
    std::vector<std::byte>& bytes = wire.emplace_back(head.begin(), head.end());
    last_asks = (bytes[1] & std::byte{wire::kFlagAckSoon}) != std::byte{};
    bytes[1] &= ~std::byte{wire::kFlagAckSoon};  // a full window asks at a run's end only
    bytes.insert(bytes.end(), payload.begin(), payload.end());
  }
  bool send_packet() {
    Packet* packet = outbox.next_packet();
    if (packet == nullptr) return false;
    link.stamp(kNow, {1, 2}, 33, wire::PacketType::kSequenced, *packet);
    post(packet->head(), {packet->payload, packet->payload_bytes});
    return true;
  }
  Run* send_run(std::size_t most, bool equal = false, Heads heads = Heads::kFull) {
    Run* run = outbox.next_run({.max_chunks = most, .equal_lengths = equal, .heads = heads});
    if (run == nullptr) return nullptr;
    link.stamp_run(kNow, {1, 2}, 33, *run);
    link.ask_if_due(*run);
    for (std::uint32_t i = 0; i < run->count; ++i) {
      post(run->head_of(i), run->payload_of(i));
    }
    return run;
  }
  void collect() {
    while (!link.acked().empty()) {
      Packet& packet = link.acked().front();
      link.acked().pop_front();
      outbox.handle_acked(packet);
      pool.give_back(packet);
    }
  }
  // Delivers the peer's ACK of everything below `end`.
  void take_ack(PacketNumber end) {
    wire::PacketHeader header;
    header.flags = wire::kFlagAck;
    header.cumulative = low32(end);
    header.credit = 4096;
    REQUIRE(link.handle_ack(kNow, header, nullptr) == wire::Verdict::kAccepted);
    collect();
  }

  Hotel<Packet> hotel;
  WindowRings rings{1};
  Pool<ArrivalBitmap> bitmaps{1};
  channel::PacketPool pool{1024, 1472};
  Pool<message::IdBitmap> ids{2};
  Pool<message::ActiveSends> active{1};
  Pool<message::SpanningMessages> spanning{1};
  LinkOptions options;
  LinkResources shared{{hotel, rings, pool}, bitmaps};
  message::OutboxCounters counters;
  message::OutboxResources of_outbox{pool, ids, active, spanning, counters};
  Link link{options, shared, kFirst};
  Request request;
  message::Outbox outbox{of_outbox, 0, 9, 1472};
  std::vector<std::vector<std::byte>> wire;
  bool last_asks = false;  // whether the last packet asks for its ACK
};

std::vector<std::byte> message_of(std::size_t size) {
  std::vector<std::byte> message(size);
  for (std::size_t i = 0; i < size; ++i) message[i] = static_cast<std::byte>(i * 7 >> 3);
  return message;
}

}  // namespace

TEST_CASE("a run puts the same packets on the wire that would have left one by one") {
  Random random(7);
  for (const std::size_t size : {5000u, 5632u, 5633u, 50'000u, 65'536u}) {
    const std::vector<std::byte> message = message_of(size);
    End one_by_one, together;
    one_by_one.outbox.send({}, 5, message, one_by_one.request);
    together.outbox.send({}, 5, message, together.request);
    while (one_by_one.send_packet()) {
    }
    std::size_t runs = 0;
    for (bool more = true; more;) {
      const bool run = together.send_run(random.below(20)) != nullptr;
      runs += run;
      more = run || together.send_packet();
    }

    CHECK(one_by_one.wire.size() == (size + 1407) / 1408);
    CHECK((together.wire == one_by_one.wire));
    CHECK(together.last_asks);
    CHECK(one_by_one.last_asks);
    CHECK(runs > 0);
    CHECK(together.link.ack_need() == AckNeed::kNone);
    for (End* end : {&one_by_one, &together}) {
      end->take_ack(end->link.window().next());
      CHECK(end->request.status() == Status::kOk);
      CHECK(end->pool.in_use() == 0);
    }
  }
}

TEST_CASE("the last packet to be cut asks for the ACK of an awaited message before it") {
  const bool own_copy = GENERATE(false, true);
  const std::vector<std::byte> message = message_of(5000);
  const std::span<const std::byte> bytes = message;
  message::SendDescriptor descriptor;
  descriptor.segments = {&bytes, 1};
  descriptor.size = message.size();
  End end;
  Request second;
  end.outbox.send({}, 5, message, end.request);
  descriptor.is_own_copy = own_copy;
  end.outbox.send({}, descriptor, second);

  for (int i = 0; i < 4; ++i) {
    REQUIRE(end.send_packet());
    CHECK_FALSE(end.last_asks);  // the second message will ask
  }
  while (end.send_packet()) {
  }
  CHECK(end.last_asks);

  end.take_ack(end.link.window().next());
  Request third;
  descriptor.is_own_copy = true;
  end.outbox.send({}, descriptor, third);
  while (end.send_packet()) {
  }
  CHECK_FALSE(end.last_asks);
  end.take_ack(end.link.window().next());
}

TEST_CASE("a full window asks for an ACK, also if the port refused the packet that was to ask") {
  const std::vector<std::byte> message = message_of(30 * 1408);
  End end;
  end.outbox.send({}, 5, message, end.request);
  Run* run = end.send_run(16);
  REQUIRE(run != nullptr);
  REQUIRE(run->count == 16);
  CHECK(end.last_asks);

  end.link.take_back(*run, 5);
  int asking = 0;
  for (auto& lost = end.link.lost(); !lost.empty();) {
    Packet& packet = lost.front();
    lost.pop_front();
    end.link.stamp(kNow, {1, 2}, 33, wire::PacketType::kSequenced, packet);
    end.post(packet.head(), {packet.payload, packet.payload_bytes});
    asking += end.last_asks;
  }

  CHECK(asking > 0);
  end.take_ack(end.link.window().next());
  while (end.send_packet()) {
  }
  end.take_ack(end.link.window().next());
}

TEST_CASE("where equal lengths are cheap, chunks are shortened rather than overlap by much") {
  for (std::size_t size = 1425; size < 20'000; size += 13) {
    const std::vector<std::byte> message = message_of(size);
    End end;
    Request another;
    // Sends that want to know of their arrival; others are copied if they are short.
    const std::span<const std::byte> whole = message;
    const message::SendDescriptor descriptor{
        .tag = 5, .segments = {&whole, 1}, .size = size, .wants_arrival = true};
    end.outbox.send({}, descriptor, end.request);
    end.outbox.send({}, descriptor, another);
    const Run* run = end.send_run(64, true);
    REQUIRE(run != nullptr);
    std::size_t carried = 0;
    for (std::uint32_t i = 0; i < run->count; ++i) carried += run->payload_of(i).size();
    CHECK(carried == size + run->overlap);
    CHECK(run->count == (size + 1407) / 1408);
    for (const auto& packet : end.wire) {
      CHECK(packet.size() <= 1472);
      CHECK(packet.size() == end.wire.front().size());
      CHECK(packet.size() >= 512 + 64);
    }
    CHECK(carried <= size + size / 7);
    end.take_ack(end.link.window().next());
    CHECK(end.request.status() == Status::kOk);
    end.outbox.fail(Status::kClosed);
  }
}

TEST_CASE("a message that left as runs is done when every chunk was acked, and not before") {
  const std::vector<std::byte> message = message_of(60'000);
  End end;
  end.outbox.send({}, 5, message, end.request);
  while (end.send_run(20) != nullptr || end.send_packet()) {
  }
  const PacketNumber last = end.link.window().next();
  for (PacketNumber n = kFirst + 1; n < last; ++n) {
    end.take_ack(n);
    CHECK(end.link.in_flight() == last - n);
    CHECK(end.request.status() == Status::kPending);
  }
  end.take_ack(last);
  CHECK(end.request.status() == Status::kOk);
  CHECK(end.pool.in_use() == 0);
}

TEST_CASE(
    "where equal lengths are cheap a long message's last chunk is full, however short its run") {
  for (const std::size_t most : {44u, 43u, 20u}) {
    const std::vector<std::byte> message = message_of(65'536);
    End end;
    Request another;
    end.outbox.send({}, 5, message, end.request);
    end.outbox.send({}, 6, message, another);
    std::size_t chunks = 0;
    while (chunks < 47)
      chunks += end.send_run(std::min<std::size_t>(most, 47 - chunks), true)->count;

    CHECK(chunks == 47);
    for (const auto& packet : end.wire) CHECK(packet.size() == 1472);
    end.take_ack(end.link.window().next());
    CHECK(end.request.status() == Status::kOk);
    end.outbox.fail(Status::kClosed);
  }
}

TEST_CASE("where equal lengths are cheap the last chunk begins earlier if a message follows") {
  const std::vector<std::byte> message = message_of(16'384);
  End end;
  Request another;
  end.outbox.send({}, 5, message, end.request);
  end.outbox.send({}, 6, message, another);

  const Run* run = end.send_run(64, true);
  REQUIRE(run != nullptr);
  REQUIRE(run->count == 12);
  for (const auto& packet : end.wire) CHECK(packet.size() == 1472);
  wire::PacketHeader header;
  REQUIRE(wire::decode(end.wire.back(), header) == wire::Verdict::kAccepted);
  wire::FrameReader reader(std::span(end.wire.back()).subspan(wire::kHeaderBytes));
  wire::Frame frame;
  REQUIRE(reader.next(frame));
  CHECK(frame.type == wire::FrameType::kChunk);
  CHECK(frame.offset == 16'384 - 1408);
  CHECK(std::equal(frame.data.begin(), frame.data.end(), message.end() - 1408, message.end()));
  CHECK_FALSE(reader.next(frame));
  CHECK(reader.ok());
  // A retransmission is the same.
  const Packet* last = end.link.find(kFirst + 11);
  CHECK(last->size() == 1472);
  CHECK(wire::chunk_head(last->body().data()).offset == 16'384 - 1408);
  CHECK(last->payload == message.data() + 16'384 - 1408);

  REQUIRE(end.send_run(64, true) != nullptr);  // nothing follows
  CHECK(end.wire.size() == 24);
  CHECK(end.wire.back().size() == 64 + 16'384 - 11 * 1408);
  end.take_ack(kFirst + 24);
  CHECK(end.request.status() == Status::kOk);
  CHECK(another.status() == Status::kOk);
  CHECK(end.pool.in_use() == 0);
}

namespace {

constexpr std::size_t kEagerOfRuns = 65'536;
constexpr std::size_t kBulkData = 1472 - wire::kBulkHeadBytes;

// A message whose eager bytes have left and whose other bytes are granted.
struct Granted : End {
  explicit Granted(std::size_t beyond, bool two = false)
      : message(message_of(kEagerOfRuns + beyond)) {
    outbox.send({}, 5, message, request);
    if (two) outbox.send({}, 5, message, another);
    while (send_run(64, true, Heads::kBulk) != nullptr || send_packet()) {
    }
    for (const auto& packet : wire) CHECK(packet.front() == std::byte{0x11});
    first = link.window().next();
    wire.clear();
    REQUIRE(outbox.handle_grant(9, message.size()));
    if (two) REQUIRE(outbox.handle_grant(10, message.size()));
  }
  // Returns the chunks on the wire, all of which are in bulk packets.
  std::vector<wire::Frame> chunks() const {
    std::vector<wire::Frame> all;
    for (const auto& packet : wire) {
      wire::PacketHeader header;
      REQUIRE(wire::decode(packet, header) == wire::Verdict::kAccepted);
      CHECK(header.type == wire::PacketType::kBulk);
      CHECK(header.to == wire::ConnectionId{1, 2});
      CHECK(header.number == low32(first + all.size()));
      CHECK(header.floor_distance == first + all.size() - link.window().floor());
      wire::Frame& chunk = all.emplace_back();
      REQUIRE(wire::read_bulk(packet, chunk));
      CHECK(chunk.id == 9);
      CHECK(std::equal(chunk.data.begin(), chunk.data.end(),
                       message.begin() + static_cast<long>(chunk.offset)));
    }
    return all;
  }
  std::vector<std::byte> message;
  Request another;
  PacketNumber first = 0;
};

}  // namespace

TEST_CASE("granted bytes leave as bulk packets of full length") {
  Granted end(10 * kBulkData + 700);
  REQUIRE(end.send_run(64, true, Heads::kBulk) != nullptr);

  const auto chunks = end.chunks();
  REQUIRE(chunks.size() == 11);
  std::uint64_t offset = kEagerOfRuns;
  for (const wire::Frame& chunk : chunks) {
    CHECK(chunk.offset == offset);
    offset += chunk.data.size();
  }
  CHECK(offset == end.message.size());
  for (std::size_t i = 0; i < 10; ++i) CHECK(end.wire[i].size() == 1472);
  end.take_ack(end.link.window().next());
  CHECK(end.request.status() == Status::kOk);
  CHECK(end.pool.in_use() == 0);
}

TEST_CASE("bulk packets are all of one length if a message follows") {
  Granted end(10 * kBulkData + 700, true);
  REQUIRE(end.send_run(64, true, Heads::kBulk) != nullptr);

  const auto chunks = end.chunks();
  REQUIRE(chunks.size() == 11);
  for (const auto& packet : end.wire) CHECK(packet.size() == 1472);
  CHECK(chunks.back().offset == end.message.size() - kBulkData);

  REQUIRE(end.send_run(64, true, Heads::kBulk) != nullptr);
  CHECK(end.wire.back().size() == wire::kBulkHeadBytes + 700);
  end.take_ack(end.link.window().next());
  CHECK(end.request.status() == Status::kOk);
  CHECK(end.another.status() == Status::kOk);
  CHECK(end.pool.in_use() == 0);
}

TEST_CASE("bytes that are not granted, or not wanted as bulk, do not leave as bulk") {
  SECTION("not granted") {
    End end;
    const auto message = message_of(2 * kEagerOfRuns);
    end.outbox.send({}, 5, message, end.request);
    Run* eager = end.send_run(10, true, Heads::kBulk);
    REQUIRE(eager != nullptr);
    CHECK_FALSE(eager->is_bulk);
    REQUIRE(end.outbox.handle_grant(9, message.size()));
    Run* granted = end.send_run(64, true, Heads::kBulk);
    REQUIRE(granted != nullptr);
    CHECK(granted->is_bulk);  // from the first byte that has not left
    end.take_ack(end.link.window().next());
    end.outbox.fail(Status::kClosed);
  }
  SECTION("not wanted") {
    Granted end(5000);
    Run* run = end.send_run(64, true, Heads::kFull);
    REQUIRE(run != nullptr);
    CHECK_FALSE(run->is_bulk);
    end.take_ack(end.link.window().next());
  }
  SECTION("two packets that are to piggyback an ACK, and all eager bytes") {
    Granted end(10 * kBulkData);
    Run* run = end.send_run(64, true, Heads::kPiggyback);
    REQUIRE(run != nullptr);
    CHECK_FALSE(run->is_bulk);
    CHECK(run->count == 2);
    for (const auto& packet : end.wire) CHECK(packet.size() == 1472);
    CHECK(end.send_run(64, true, Heads::kBulk)->is_bulk);
    CHECK(end.wire[2].size() == 1472);
    end.take_ack(end.link.window().next());
    CHECK(end.request.status() == Status::kOk);
    End eager;
    eager.outbox.send({}, 5, end.message, eager.request);
    REQUIRE(eager.send_run(20, true, Heads::kPiggyback) != nullptr);
    CHECK(eager.wire.size() == 20);
    eager.take_ack(eager.link.window().next());
    eager.outbox.fail(Status::kClosed);
  }
  SECTION("one bulk packet's worth, which leaves as two chunks") {
    Granted end(kBulkData);
    Run* run = end.send_run(64, true, Heads::kBulk);
    REQUIRE(run != nullptr);
    CHECK_FALSE(run->is_bulk);
    end.take_ack(end.link.window().next());
    CHECK(end.request.status() == Status::kOk);
  }
}

TEST_CASE("a lost bulk packet is retransmitted as one, and piggybacks no ACK") {
  Granted end(5 * kBulkData);
  Run* run = end.send_run(64, true, Heads::kBulk);
  REQUIRE(run != nullptr);
  const auto wire = end.wire;
  end.link.take_back(*run, 2);
  end.wire.clear();
  REQUIRE(end.link.lost().size() == 3);
  wire::PacketHeader arrived;
  arrived.number = 78;
  end.link.handle_arrival(kNow, arrived);

  while (!end.link.lost().empty()) {
    Packet& packet = end.link.lost().front();
    end.link.lost().pop_front();
    end.link.stamp(kNow, {1, 2}, 33, wire::PacketType::kSequenced, packet);
    end.post(packet.head(), {packet.payload, packet.payload_bytes});
  }

  end.first += 5;
  REQUIRE(end.chunks().size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(std::equal(end.wire[i].begin() + wire::kBulkHeaderBytes, end.wire[i].end(),
                     wire[2 + i].begin() + wire::kBulkHeaderBytes, wire[2 + i].end()));
  }
  CHECK(end.link.ack_need() == AckNeed::kDelayed);
  end.take_ack(end.link.window().next());
  CHECK(end.request.status() == Status::kOk);
  CHECK(end.pool.in_use() == 0);
}

TEST_CASE("a bulk packet too long for its path leaves in fragments that are bulk packets") {
  Granted end(5 * kBulkData);
  Run* run = end.send_run(64, true, Heads::kBulk);
  REQUIRE(run != nullptr);
  end.link.take_back(*run, 4);
  Packet& packet = end.link.lost().front();
  std::uint64_t at = kEagerOfRuns + 4 * kBulkData;
  for (;;) {
    message::fragment(packet, 576);
    CHECK(packet.size() <= 576);
    CHECK(packet.used == wire::kBulkHeadBytes);
    const wire::Frame head = wire::bulk_head(packet.bytes + wire::kBulkHeaderBytes);
    CHECK(head.id == 9);
    CHECK(head.offset == at);
    CHECK(packet.payload == end.message.data() + at);
    at += packet.payload_bytes;
    if (packet.rest == 0) break;
    message::advance_fragment(packet);
  }
  CHECK(at == end.message.size());
  end.link.lost().pop_front();
  end.link.stamp(kNow, {1, 2}, 33, wire::PacketType::kSequenced, packet);
  end.take_ack(end.link.window().next());
  CHECK(end.request.status() == Status::kOk);
}

TEST_CASE("chunks of a run that the port refused are sent again, but not counted as lost") {
  const std::vector<std::byte> message = message_of(60'000);
  End end;
  end.outbox.send({}, 5, message, end.request);
  Run* run = end.send_run(20);
  REQUIRE(run != nullptr);

  end.link.take_back(*run, 13);

  CHECK(end.link.lost().size() == 7);
  CHECK(end.link.in_flight() == 13);
  CHECK(end.link.lost().front().state == PacketState::kQueued);
  CHECK(end.link.lost().front().payload == message.data() + 13 * 1408);
  while (!end.link.lost().empty()) {
    Packet& packet = end.link.lost().front();
    end.link.lost().pop_front();
    end.link.stamp(kNow, {1, 2}, 33, wire::PacketType::kSequenced, packet);
  }
  while (end.send_run(20) != nullptr || end.send_packet()) {
  }
  end.take_ack(end.link.window().next());
  CHECK(end.request.status() == Status::kOk);
  CHECK(end.pool.in_use() == 0);
}

TEST_CASE("of a run only the chunk that is missing is retransmitted") {
  const std::vector<std::byte> message = message_of(60'000);
  End end;
  end.outbox.send({}, 5, message, end.request);
  REQUIRE(end.send_run(30) != nullptr);
  wire::PacketHeader header;
  header.flags = wire::kFlagAck;
  header.cumulative = low32(kFirst + 4);
  header.credit = 4096;
  std::byte sack[AckTracker::kMaxSackBytes];
  wire::put_sack(sack, kFirst + 5, 1);
  wire::set_sack_word(sack, 0, (std::uint64_t{1} << 25) - 1);
  wire::FrameReader reader({sack, 16});
  wire::Frame frame;
  REQUIRE(reader.next(frame));

  REQUIRE(end.link.handle_ack(kNow + std::chrono::milliseconds(1), header, &frame) ==
          wire::Verdict::kAccepted);
  end.link.handle_loss_due(kNow + std::chrono::seconds(1));
  end.collect();

  CHECK(end.link.lost().size() == 1);
  CHECK(end.link.in_flight() == 0);
  Packet& packet = end.link.lost().front();
  CHECK(packet.number == kFirst + 4);
  CHECK(packet.payload == message.data() + 4 * 1408);
  CHECK(packet.chunks == 30);
  end.link.lost().clear();
  end.outbox.abandon(packet);
  CHECK(end.pool.in_use() == 0);
  end.outbox.fail(Status::kClosed);
}

TEST_CASE("a run of which nothing is lost stays whole, whichever packet overtook it") {
  const std::vector<std::byte> message = message_of(60'000);
  End end;
  end.outbox.send({}, 5, message, end.request);
  const Run* run = end.send_run(30);
  REQUIRE(run != nullptr);
  Packet& tiny = *end.pool.take(Packet::kSmallBytes);
  tiny.channel = channel::ChannelKind::kCommand;
  end.link.stamp(kNow, {1, 2}, 33, wire::PacketType::kSequenced, tiny);
  wire::PacketHeader header;
  header.flags = wire::kFlagAck;
  header.cumulative = low32(kFirst);
  header.credit = 4096;
  std::byte sack[AckTracker::kMaxSackBytes];
  const bool same_channel = GENERATE(false, true);
  wire::put_sack(sack, kFirst + (same_channel ? 29 : 30), 1);
  wire::set_sack_word(sack, 0, 1);
  wire::FrameReader reader({sack, 16});
  wire::Frame frame;
  REQUIRE(reader.next(frame));

  REQUIRE(end.link.handle_ack(kNow, header, &frame) == wire::Verdict::kAccepted);

  CHECK(std::popcount(run->left) == (same_channel ? 29 : 30));
  end.take_ack(end.link.window().next());
  end.outbox.fail(Status::kClosed);
}

}  // namespace pullman::reliability
