#include "pullman/multi_request.h"

#include <utility>

#include "base/check.h"

namespace pullman {

void MultiRequest::begin(std::size_t peers, SharedBytes message) {
  PULLMAN_DCHECK(done());
  if (peers > room_) {
    requests_ = std::make_unique<Request[]>(peers);
    room_ = peers;
    for (std::size_t i = 0; i < room_; ++i) {
      requests_[i].user = this;
      requests_[i].on_done = note_done;
    }
  }
  peers_ = peers;
  message_ =
      message != nullptr ? std::move(message) : std::make_shared<const std::vector<std::byte>>();
  left_.store(peers + 1, std::memory_order_relaxed);
  done_.store(false, std::memory_order_relaxed);
}

Status MultiRequest::end() {
  count_down();
  return status();
}

void MultiRequest::note_done(Request& request) {
  static_cast<MultiRequest*>(request.user)->count_down();
}

// Several threads may, each for another send.
void MultiRequest::count_down() {
  if (left_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  message_.reset();
  // From here on another thread may take it to be its own again.
  done_.store(true, std::memory_order_release);
}

Status MultiRequest::status() const {
  if (!done()) return Status::kPending;
  for (std::size_t i = 0; i < peers_; ++i) {
    if (requests_[i].status() != Status::kOk) return requests_[i].status();
  }
  return Status::kOk;
}

}  // namespace pullman
