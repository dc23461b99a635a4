#include "shm/pair.h"

#include <utility>

#include "base/check.h"

namespace pullman::shm {

std::span<std::byte> Pair::part_of(bool creator) const {
  return memory_->bytes().subspan(creator ? 0 : kEndBytes, kEndBytes);
}

Pair::Pair(std::unique_ptr<Memory> memory, bool creator)
    : memory_(std::move(memory)),
      mine_(reinterpret_cast<Said*>(part_of(creator).data())),
      theirs_(reinterpret_cast<Said*>(part_of(!creator).data())),
      out_(part_of(creator).subspan(sizeof(Said))),
      in_(part_of(!creator).subspan(sizeof(Said))) {
  PULLMAN_CHECK(memory_->bytes().size() == kBytes);
  mine_->told = memory_->own();
  std::atomic_ref(mine_->joined).store(1, std::memory_order_release);
}

bool Pair::has_joined() const {
  return std::atomic_ref(theirs_->joined).load(std::memory_order_acquire) != 0;
}

bool Pair::set_sleeping() {
  const bool anew = std::atomic_ref(mine_->sleeps).exchange(1, std::memory_order_seq_cst) == 0;
  std::atomic_thread_fence(std::memory_order_seq_cst);  // before has_news() looks
  return anew;
}

void Pair::clear_sleeping() {
  std::atomic_ref(mine_->sleeps).store(0, std::memory_order_relaxed);
}

bool Pair::has_news() {
  return in_.front().has_value() || in_.is_corrupt() || has_ended();
}

bool Pair::must_wake() {
  std::atomic_ref sleeps(theirs_->sleeps);
  return sleeps.load(std::memory_order_relaxed) != 0 &&
         sleeps.exchange(0, std::memory_order_seq_cst) != 0;
}

void Pair::end() {
  std::atomic_ref(mine_->ended).store(1, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // before references become void
}

bool Pair::has_ended() const {
  return std::atomic_ref(theirs_->ended).load(std::memory_order_acquire) != 0;
}

void Pair::meet() {
  memory_->meet(theirs_->told);
  std::atomic_ref(mine_->reads).store(memory_->can_read() ? 1 : 0, std::memory_order_relaxed);
}

bool Pair::is_read_there() {
  if (!read_there_) read_there_ = std::atomic_ref(theirs_->reads).load(std::memory_order_relaxed);
  return read_there_;
}

bool Pair::read(std::uint64_t address, std::span<std::byte> into) const {
  const bool read = memory_->read(address, into);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // before has_ended() is asked
  return read;
}

}  // namespace pullman::shm
