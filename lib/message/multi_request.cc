#include "message/multi_request.h"

#include <utility>

#include "base/check.h"

namespace pullman {

MultiRequest::MultiRequest() = default;
MultiRequest::~MultiRequest() = default;

Status MultiRequest::status() const {
  if (!done()) return Status::kPending;
  for (std::size_t i = 0; i < peers(); ++i) {
    if (status(i) != Status::kOk) return status(i);
  }
  return Status::kOk;
}

std::size_t MultiRequest::peers() const {
  return state_ == nullptr ? 0 : state_->peers();
}

Status MultiRequest::status(std::size_t index) const {
  return state_->request(index).status();
}

MultiRequest::State& MultiRequest::State::of(MultiRequest& request) {
  if (request.state_ == nullptr) request.state_ = std::make_unique<State>(request);
  return *request.state_;
}

void MultiRequest::State::begin(std::size_t peers, SharedBytes message) {
  PULLMAN_DCHECK(whole_.done());
  if (message == nullptr) message = std::make_shared<const std::vector<std::byte>>();
  if (peers > room_) {
    requests_ = std::make_unique<Request[]>(peers);
    room_ = peers;
    for (std::size_t i = 0; i < room_; ++i) {
      requests_[i].user = this;
      requests_[i].on_done = note_done;
    }
  }
  peers_ = peers;
  message_ = std::move(message);
  left_.store(peers + 1, std::memory_order_relaxed);
  whole_.done_.store(false, std::memory_order_relaxed);
}

Status MultiRequest::State::end() {
  count_down();
  return whole_.status();
}

void MultiRequest::State::note_done(Request& request) {
  static_cast<State*>(request.user)->count_down();
}

// Several threads may call it at once, each for another send.
void MultiRequest::State::count_down() {
  if (left_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  message_.reset();
  // From this store on another thread may reuse or destroy it.
  whole_.done_.store(true, std::memory_order_release);
}

}  // namespace pullman
