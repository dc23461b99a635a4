// A packet in this process: the bytes that go out, and what has to be remembered until they are
// acked.
//
// A packet is built once, by whoever owns its frames, and keeps its body until it is acked: "lost"
// means that the same body leaves again under a new number (wire.md 3.1). Its life is one enum.
// Knows its own bytes; does not know windows, peers or NICs.
#pragma once

#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/aligned_bytes.h"
#include "base/guest.h"
#include "base/sequence.h"
#include "base/time.h"
#include "wire/header.h"

namespace pullman {
class Request;
}

namespace pullman::channel {

enum class ChannelKind : std::uint8_t { kCommand = 0, kData = 1 };
inline constexpr std::size_t kChannels = 2;

enum class PacketState : std::uint8_t {
  kFree,      // in the pool
  kQueued,    // built or being filled, waits for a number
  kInFlight,  // numbered: in a window and in the hotel
  kLost,      // judged lost: waits for another number
};

struct Packet;
struct QueueTag;
using QueueHook = boost::intrusive::list_base_hook<boost::intrusive::tag<QueueTag>>;

// In the hotel while in flight; in one queue while queued or lost.
struct Packet : Guest, QueueHook {
  // Room for the header and one chunk's frame: what a packet needs whose payload lies elsewhere.
  static constexpr std::size_t kSmallBytes = 64;

  std::byte* bytes = nullptr;  // header, then frames; `capacity` bytes, the pool's
  std::uint32_t used = 0;      // of `bytes`, header included
  std::uint32_t capacity = 0;
  const std::byte* payload = nullptr;  // the last frame's data, if it lies in the user's memory
  std::uint32_t payload_bytes = 0;
  std::uint32_t rest = 0;      // bytes that follow when these have arrived (message/tx/fragments.h)
  std::uint32_t peer = 0;      // index of the peer whose packet this is
  std::uint32_t chunks = 1;    // of `message`, that are done with when this is acked
  Request* message = nullptr;  // the send that `payload` belongs to
  PacketNumber number = 0;     // valid in flight
  Instant sent_at{};           // valid in flight
  std::uint64_t first_message = 0;  // id of the first small message in it
  // Small messages in it, under consecutive ids, and no other; kUncounted: its frames say.
  std::uint32_t messages = kUncounted;
  static constexpr std::uint32_t kUncounted = ~std::uint32_t{0};
  // While bytes of its own leave in fragments: the offset, in the message, behind their frame's
  // last.
  std::uint32_t fragment_end = 0;
  ChannelKind channel = ChannelKind::kData;
  PacketState state = PacketState::kFree;
  bool in_channel = false;         // the channel has yet to hand it to the port
  bool is_probe : 1 = false;       // carries a PING and nothing to deliver
  bool is_path_probe : 1 = false;  // and padding: does the path carry so long a packet?
  bool is_run = false;             // stands for several (channel/run.h)
  std::uint8_t rail = 0;           // of that peer: whose link numbered it last
  bool is_bulk = false;            // its head is a bulk packet's, and all of it (wire.md 2.11)
  bool wants_ack = false;  // soon: somebody may wait for that. Of a run, its last chunk does

  std::size_t size() const { return used + payload_bytes; }
  std::size_t room() const { return capacity - used; }
  std::span<const std::byte> head() const { return {bytes, used}; }
  // Not of a bulk packet.
  std::span<const std::byte> body() const {
    return {bytes + wire::kHeaderBytes, used - wire::kHeaderBytes};
  }
  std::byte* end() { return bytes + used; }
};

using PacketQueue = boost::intrusive::list<Packet, boost::intrusive::base_hook<QueueHook>,
                                           boost::intrusive::constant_time_size<true>>;

struct Run;

// All packets of an engine, in two sizes: small (kSmallBytes) and large (a full packet); and runs,
// of which each chunk counts as a small packet. Bounded; grows by blocks up to the bound, then
// allocates nothing. Empty is an answer: the caller waits.
class PacketPool {
 public:
  PacketPool(std::size_t capacity, std::size_t large_bytes);
  ~PacketPool();
  PacketPool(const PacketPool&) = delete;
  PacketPool& operator=(const PacketPool&) = delete;

  // A packet with room for at least `bytes`, header included; null when the pool is empty.
  Packet* take(std::size_t bytes);
  // A run too; what was split off is given back by itself.
  void give_back(Packet& packet);

  // A run of so many chunks, at most Run::kMost; null when there is none, or no small packets for
  // all of them.
  Run* take_run(std::uint32_t count);
  // Chunk `at`, which the run has, becomes a packet like any other, with a copy of its head. When
  // it was the last, what the run owes to its message is owed by that packet.
  Packet& split(Run& run, std::uint32_t at);
  // Those chunks, which the run has, need nothing any more.
  void shed(Run& run, std::uint64_t chunks);

  // Chunks of runs count as packets.
  std::size_t in_use() const { return in_use_; }
  std::size_t runs_in_use() const { return runs_in_use_; }
  std::size_t chunks_in_runs() const { return set_aside_; }
  std::size_t large_bytes() const { return large_.bytes_each; }
  // Two of three small ones are gone, those of runs counted: what limits who sends chunks.
  bool is_short() const { return 3 * (small_.in_use + set_aside_) >= 2 * capacity_; }

 private:
  struct SizeClass {
    std::size_t bytes_each = 0;
    std::size_t made = 0;
    std::size_t in_use = 0;
    std::vector<std::unique_ptr<Packet[]>> packets;
    std::vector<AlignedBytes> memory;
    PacketQueue free;  // last, so that it lets go of its packets before they are destroyed
  };
  static constexpr std::size_t kBlock = 64;
  // Runs at most: one for so many packets.
  static constexpr std::size_t kPacketsPerRun = 16;
  struct MadeRun;

  SizeClass& class_of(const Packet& packet) {
    return packet.capacity == small_.bytes_each ? small_ : large_;
  }
  void grow(SizeClass& size_class);
  Run* unused_run();

  std::size_t capacity_;  // of each size
  SizeClass small_;
  SizeClass large_;
  std::vector<std::unique_ptr<MadeRun>> runs_;
  PacketQueue free_runs_;
  std::size_t in_use_ = 0;
  std::size_t runs_in_use_ = 0;
  std::size_t set_aside_ = 0;  // small packets, for the chunks of runs
};

}  // namespace pullman::channel
