#include "channel/packet.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "channel/run.h"

namespace pullman::channel {

struct PacketPool::MadeRun {
  static constexpr std::size_t kBytes = Run::kMost * Packet::kSmallBytes;

  alignas(64) std::array<std::byte, kBytes> heads;
  Run run;
};

PacketPool::PacketPool(std::size_t capacity, std::size_t large_bytes) : capacity_(capacity) {
  small_.bytes_each = Packet::kSmallBytes;
  large_.bytes_each = large_bytes;
}

PacketPool::~PacketPool() = default;

void PacketPool::grow(SizeClass& size_class) {
  const std::size_t count = std::min(kBlock, capacity_ - size_class.made);
  if (count == 0) return;
  auto packets = std::make_unique<Packet[]>(count);
  const std::size_t stride = whole_lines(size_class.bytes_each);
  AlignedBytes memory = make_aligned_bytes(count * stride);
  std::memset(memory.get(), 0, count * stride);
  for (std::size_t i = 0; i < count; ++i) {
    packets[i].bytes = memory.get() + i * stride;
    packets[i].capacity = static_cast<std::uint32_t>(size_class.bytes_each);
    size_class.free.push_back(packets[i]);
  }
  size_class.made += count;
  size_class.packets.push_back(std::move(packets));
  size_class.memory.push_back(std::move(memory));
}

Packet* PacketPool::take(std::size_t bytes) {
  PULLMAN_DCHECK(bytes <= large_.bytes_each);
  SizeClass& size_class = bytes <= small_.bytes_each ? small_ : large_;
  const std::size_t promised = &size_class == &small_ ? set_aside_ : 0;
  if (size_class.in_use + promised >= capacity_) [[unlikely]]
    return nullptr;
  if (size_class.free.empty()) [[unlikely]]
    grow(size_class);
  Packet& packet = size_class.free.front();
  size_class.free.pop_front();
  packet.used = wire::kHeaderBytes;
  packet.payload = nullptr;
  packet.payload_bytes = 0;
  packet.rest = 0;
  packet.chunks = 1;
  packet.message = nullptr;
  packet.messages = Packet::kUncounted;
  packet.state = PacketState::kQueued;
  packet.is_probe = false;
  packet.is_path_probe = false;
  packet.is_bulk = false;
  packet.wants_ack = false;
  ++size_class.in_use;
  ++in_use_;
  return &packet;
}

void PacketPool::give_back(Packet& packet) {
  PULLMAN_DCHECK(packet.state != PacketState::kFree && !packet.in_channel);
  PULLMAN_DCHECK(!packet.checked_in() && !packet.QueueHook::is_linked());
  packet.state = PacketState::kFree;
  if (Run* run = as_run(&packet)) {
    shed(*run, run->left);
    --runs_in_use_;
    free_runs_.push_front(packet);
    return;
  }
  SizeClass& size_class = class_of(packet);
  size_class.free.push_front(packet);
  --size_class.in_use;
  --in_use_;
}

Run* PacketPool::unused_run() {
  if (!free_runs_.empty()) {
    Packet& packet = free_runs_.front();
    free_runs_.pop_front();
    return as_run(&packet);
  }
  if (runs_.size() >= capacity_ / kPacketsPerRun) return nullptr;
  runs_.push_back(std::make_unique<MadeRun>());
  Run& run = runs_.back()->run;
  run.is_run = true;
  run.bytes = runs_.back()->heads.data();
  run.capacity = MadeRun::kBytes;
  return &run;
}

Run* PacketPool::take_run(std::uint32_t count) {
  PULLMAN_DCHECK(count > 0 && count <= Run::kMost);
  if (small_.in_use + set_aside_ + count > capacity_) return nullptr;
  Run* run = unused_run();
  if (run == nullptr) return nullptr;
  run->used = Packet::kSmallBytes;
  run->state = PacketState::kQueued;
  run->count = run->chunks = count;
  run->overlap = 0;
  run->is_bulk = false;
  run->wants_ack = false;
  run->left = ~std::uint64_t{0} >> (Run::kMost - count);
  ++runs_in_use_;
  in_use_ += count;
  set_aside_ += count;
  return run;
}

Packet& PacketPool::split(Run& run, std::uint32_t at) {
  PULLMAN_DCHECK(run.has(at));
  --set_aside_;
  --in_use_;
  Packet* packet = take(Packet::kSmallBytes);
  PULLMAN_CHECK(packet != nullptr);
  std::memcpy(packet->bytes, run.head_at(at), run.used);
  packet->used = run.used;
  packet->is_bulk = run.is_bulk;
  packet->wants_ack = run.wants_ack && at + 1 == run.count;
  packet->payload = run.payload_of(at).data();
  packet->payload_bytes = static_cast<std::uint32_t>(run.payload_of(at).size());
  packet->peer = run.peer;
  packet->message = run.message;
  packet->number = run.number + at;
  packet->sent_at = run.sent_at;
  packet->channel = run.channel;
  packet->rail = run.rail;
  packet->state = run.state;
  run.left &= ~(std::uint64_t{1} << at);
  --run.chunks;
  if (run.left == 0) packet->chunks += run.chunks;
  return *packet;
}

void PacketPool::shed(Run& run, std::uint64_t chunks) {
  PULLMAN_DCHECK((chunks & ~run.left) == 0);
  const auto count = static_cast<std::size_t>(std::popcount(chunks));
  run.left &= ~chunks;
  set_aside_ -= count;
  in_use_ -= count;
}

}  // namespace pullman::channel
