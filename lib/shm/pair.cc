#include "shm/pair.h"

#include <span>
#include <utility>

namespace pullman::shm {
namespace {

constexpr std::size_t kEndBytes = kLineBytes + ring_bytes(Pair::kCapacity);

// An end's part of the segment: what it says, and the ring that it writes.
std::span<std::byte> part_of(const Segment& segment, bool creator) {
  return segment.bytes().subspan(creator ? 0 : kEndBytes, kEndBytes);
}

}  // namespace

Pair Pair::create(const Secret& secret, const std::filesystem::path& folder) {
  return {Segment::create(2 * kEndBytes, secret, folder), true};
}

Pair Pair::join(std::string_view name, const Secret& secret, const std::filesystem::path& folder) {
  return {Segment::open(name, 2 * kEndBytes, secret, folder), false};
}

Pair::Pair(Segment segment, bool creator)
    : segment_(std::move(segment)),
      mine_(reinterpret_cast<Said*>(part_of(segment_, creator).data())),
      theirs_(reinterpret_cast<Said*>(part_of(segment_, !creator).data())),
      out_(part_of(segment_, creator).subspan(kLineBytes)),
      in_(part_of(segment_, !creator).subspan(kLineBytes)) {}

bool Pair::set_sleeping(bool sleeps) {
  std::atomic_ref(mine_->sleeps).store(sleeps ? 1 : 0, std::memory_order_seq_cst);
  if (!sleeps) return false;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return in_.front().has_value() || in_.is_corrupt() || has_ended();
}

bool Pair::must_wake() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  std::atomic_ref sleeps(theirs_->sleeps);
  return sleeps.load(std::memory_order_relaxed) != 0 &&
         sleeps.exchange(0, std::memory_order_seq_cst) != 0;
}

void Pair::end() {
  std::atomic_ref(mine_->ended).store(1, std::memory_order_seq_cst);
}

bool Pair::has_ended() const {
  return std::atomic_ref(theirs_->ended).load(std::memory_order_acquire) != 0;
}

}  // namespace pullman::shm
