// Reassembly: which bytes have come (range set), and where they go (inbox: ids, turns, copies).
#include <algorithm>
#include <array>
#include <memory_resource>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "message/rx/inbox.h"
#include "micro/run.h"

namespace pullman::bench {
namespace {

using namespace message;

constexpr std::size_t kTotal = 1 << 20;
constexpr std::size_t kChunk = 1408;  // of a 1472-byte packet: header and frame taken off
constexpr PeerId kPeer{0, 1};
constexpr MessageId kFirst = 100;
constexpr std::uint64_t kAllowance = 1 << 18;
constexpr std::uint32_t kEager = 64 * 1024;

// The offsets of a 1 MiB message's chunks, in the order in which they come.
enum class Order { kStraight, kPairsSwapped, kShuffled };

std::vector<std::size_t> offsets(Order order) {
  std::vector<std::size_t> all;
  for (std::size_t at = 0; at < kTotal; at += kChunk) all.push_back(at);
  if (order == Order::kPairsSwapped) {
    for (std::size_t i = 0; i + 1 < all.size(); i += 2) std::swap(all[i], all[i + 1]);
  }
  if (order == Order::kShuffled) {
    Random random(1);
    for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random.below(i)]);
  }
  return all;
}

// The chunks of one 1 MiB message.
template <Order kOrder>
void ranges(benchmark::State& state) {
  std::pmr::unsynchronized_pool_resource memory;
  const auto order = offsets(kOrder);
  for (auto _ : state) {
    RangeSet set(&memory);
    for (const std::size_t at : order) set.add({at, std::min(at + kChunk, kTotal)});
    PULLMAN_CHECK(set.prefix() == kTotal);
  }
  count_items(state, static_cast<std::uint64_t>(state.iterations()) * order.size());
}

struct Receiver {
  Receiver() { inbox.start(kFirst); }
  ~Receiver() { inbox.fail(Status::kClosed); }

  void want(std::span<std::byte> buffer) {
    Operation& op = Operation::of(request);
    op.begin(Operation::Kind::kReceive, kPeer, 0);
    op.buffer = buffer.data();
    op.size = buffer.size();
  }
  void drain_frames() {
    if (inbox.has_frames()) inbox.write_frames(frames.data(), frames.size());
  }

  Matcher matcher;
  std::pmr::unsynchronized_pool_resource memory;
  Pool<IdBitmap> bitmaps{2};
  Slab<ShortMessage> shorts;
  Reserve reserve{0};
  InboxCounters counters;
  Pool<ActiveMessages> active_messages{1};
  InboxResources shares{matcher,
                        memory,
                        bitmaps,
                        shorts,
                        active_messages,
                        counters,
                        {kAllowance, kAllowance, reserve},
                        kEager};
  Inbox inbox{shares, kPeer};
  Request request;
  std::array<std::byte, 64> frames;
};

// 1 MiB messages that are expected: each chunk is copied to its place.
template <Order kOrder>
void chunks(benchmark::State& state) {
  Receiver receiver;
  const auto order = offsets(kOrder);
  std::vector<std::byte> packet(kChunk), buffer(kTotal);
  MessageId id = kFirst;
  for (auto _ : state) {
    receiver.want(buffer);
    receiver.matcher.find_or_post(receiver.request);
    for (const std::size_t at : order) {
      const wire::Frame frame{.type = wire::FrameType::kChunk,
                              .id = low32(id),
                              .total = kTotal,
                              .offset = at,
                              .data = {packet.data(), std::min(kChunk, kTotal - at)}};
      PULLMAN_CHECK(receiver.inbox.handle_chunk(frame) == Taken::kNew);
      receiver.drain_frames();
    }
    PULLMAN_CHECK(receiver.request.done());
    ++id;
  }
  count_items(state, static_cast<std::uint64_t>(state.iterations()) * order.size());
}

wire::Frame tiny(MessageId id, std::span<const std::byte> data) {
  return {.type = wire::FrameType::kMessage, .id = low32(id), .data = data};
}

// 64-byte messages that are expected.
void expected(benchmark::State& state) {
  Receiver receiver;
  std::array<std::byte, 64> packet{}, buffer;
  MessageId id = kFirst;
  for (auto _ : state) {
    receiver.want(buffer);
    receiver.matcher.find_or_post(receiver.request);
    receiver.inbox.handle_message(tiny(id++, packet));
    PULLMAN_CHECK(receiver.request.done());
    receiver.drain_frames();
  }
  count_items(state, static_cast<std::uint64_t>(state.iterations()));
}

// 64-byte messages that come before their receive: held, found, copied once more.
void unexpected(benchmark::State& state) {
  Receiver receiver;
  std::array<std::byte, 64> packet{}, buffer;
  MessageId id = kFirst;
  for (auto _ : state) {
    receiver.inbox.handle_message(tiny(id++, packet));
    receiver.want(buffer);
    receiver.inbox.attach(*receiver.matcher.find({kPeer, 0, 0}), receiver.request);
    PULLMAN_CHECK(receiver.request.done());
    receiver.drain_frames();
  }
  count_items(state, static_cast<std::uint64_t>(state.iterations()));
}

}  // namespace
}  // namespace pullman::bench

int main(int argc, char** argv) {
  using namespace pullman::bench;
  return run(argc, argv,
             {{"ranges/in_order_1M", ranges<Order::kStraight>},
              {"ranges/pairs_swapped_1M", ranges<Order::kPairsSwapped>},
              {"ranges/shuffled_1M", ranges<Order::kShuffled>},
              {"inbox/chunks_in_order_1M", chunks<Order::kStraight>},
              {"inbox/chunks_pairs_swapped_1M", chunks<Order::kPairsSwapped>},
              {"inbox/expected_64", expected},
              {"inbox/unexpected_64", unexpected}});
}
