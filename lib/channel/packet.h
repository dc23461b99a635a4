// A packet to be sent: its bytes, and the state that is kept until it is acknowledged.
//
// A packet is built once, by the owner of its frames, and keeps its body until it is acknowledged.
// If it is lost, the same body is sent again under a new number (wire.md 3.1). One enum is its
// state. Knows its own bytes; does not know windows, peers or NICs.
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
  kQueued,    // built or being filled, without a number yet
  kInFlight,  // numbered: in a window and in the hotel
  kLost,      // declared lost: waits for a new number
};

struct Packet;
struct QueueTag;
using QueueHook = boost::intrusive::list_base_hook<boost::intrusive::tag<QueueTag>>;

// A packet is in the hotel while in flight, and in one queue while queued or lost.
struct Packet : Guest, QueueHook {
  // Room for the header and one chunk's frame head, for packets whose payload lies elsewhere.
  static constexpr std::size_t kSmallBytes = 64;

  std::byte* bytes = nullptr;  // header, then frames; `capacity` bytes owned by the pool
  std::uint32_t used = 0;      // bytes used, header included
  std::uint32_t capacity = 0;
  const std::byte* payload = nullptr;  // the last frame's data, if it lies in the user's memory
  std::uint32_t payload_bytes = 0;
  std::uint32_t rest = 0;      // bytes to be sent after these are acked (message/tx/fragments.h)
  std::uint32_t peer = 0;      // index of the peer
  std::uint32_t chunks = 1;    // how many chunks of `message` are done when this is acked
  Request* message = nullptr;  // the send that `payload` belongs to
  PacketNumber number = 0;     // valid in flight
  Instant sent_at{};           // valid in flight
  std::uint64_t first_message = 0;  // id of the first small message in it
  // The number of small messages in it, if they have consecutive ids and there is no other frame;
  // else kUncounted: see its frames.
  std::uint32_t messages = kUncounted;
  static constexpr std::uint32_t kUncounted = ~std::uint32_t{0};
  // While `bytes` leave in fragments: the offset in the message of the end of their frame's data.
  std::uint32_t fragment_end = 0;
  ChannelKind channel = ChannelKind::kData;
  PacketState state = PacketState::kFree;
  bool in_channel = false;         // it is in a channel's batch, not yet taken by the port
  bool is_probe : 1 = false;       // carries a PING and no data
  bool is_path_probe : 1 = false;  // a probe of the path MTU: carries padding, too
  bool is_run = false;             // it is a Run (channel/run.h)
  std::uint8_t rail = 0;           // the rail of the peer whose link numbered it last
  bool is_bulk = false;            // it is a bulk packet with a bulk header (wire.md 2.11)
  bool wants_ack = false;          // it asks for its ACK; of a run, the last chunk does

  std::size_t size() const { return used + payload_bytes; }
  std::size_t room() const { return capacity - used; }
  std::span<const std::byte> head() const { return {bytes, used}; }
  // Returns the frames. Not for bulk packets.
  std::span<const std::byte> body() const {
    return {bytes + wire::kHeaderBytes, used - wire::kHeaderBytes};
  }
  std::byte* end() { return bytes + used; }
};

using PacketQueue = boost::intrusive::list<Packet, boost::intrusive::base_hook<QueueHook>,
                                           boost::intrusive::constant_time_size<true>>;

struct Run;

// All packets of an engine, in two sizes: small (kSmallBytes) and large (a full packet); and runs,
// of which each chunk counts as a small packet. The pool grows by blocks up to its bound, then
// allocates nothing. If it is empty the caller waits.
class PacketPool {
 public:
  PacketPool(std::size_t capacity, std::size_t large_bytes);
  ~PacketPool();
  PacketPool(const PacketPool&) = delete;
  PacketPool& operator=(const PacketPool&) = delete;

  // Returns a packet with room for at least `bytes`, header included; null if the pool is empty.
  Packet* take(std::size_t bytes);
  // Takes back a packet or a run. Packets that were split off the run are given back separately.
  void give_back(Packet& packet);

  // Returns a run of that many chunks, at most Run::kMost; null if there is none, or if there are
  // not as many small packets.
  Run* take_run(std::uint32_t count);
  // Turns chunk `at` of the run into a single packet, with a copy of its head. If it was the last
  // one left, the packet also takes over the chunks that `run.chunks` still counts.
  Packet& split(Run& run, std::uint32_t at);
  // Removes chunks that are in the run, and frees the small packets set aside for them.
  void shed(Run& run, std::uint64_t chunks);

  // Returns the packets in use; each chunk of a run counts as one.
  std::size_t in_use() const { return in_use_; }
  std::size_t runs_in_use() const { return runs_in_use_; }
  std::size_t chunks_in_runs() const { return set_aside_; }
  std::size_t large_bytes() const { return large_.bytes_each; }
  // Returns true if two thirds of the small packets, which limit the sending of chunks, are in use
  // or set aside for runs.
  bool is_short() const { return 3 * (small_.in_use + set_aside_) >= 2 * capacity_; }

 private:
  struct SizeClass {
    std::size_t bytes_each = 0;
    std::size_t made = 0;
    std::size_t in_use = 0;
    std::vector<std::unique_ptr<Packet[]>> packets;
    std::vector<AlignedBytes> memory;
    PacketQueue free;  // last, so that it is destroyed before its packets
  };
  static constexpr std::size_t kBlock = 64;
  // There is at most one run for each kPacketsPerRun packets.
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
  std::size_t set_aside_ = 0;  // small packets set aside for chunks of runs
};

}  // namespace pullman::channel
