// Gets and atomics between this process and one peer: ours that are not answered yet, and our
// answers to the peer's that are not delivered yet. One per peer.
//
// Requests and answers are messages; the outbox sends them. Does not know regions, nor how requests
// and answers arrive.
#pragma once

#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/sequence.h"
#include "message/allowance.h"
#include "message/rma/pending_requests.h"
#include "message/rx/remote_operations.h"
#include "message/send_descriptor.h"
#include "message/tx/outbox.h"
#include "pullman/request.h"

namespace pullman::message {

class OneSided final : public RemoteOperations {
 public:
  explicit OneSided(Outbox& outbox) : outbox_(outbox) {}
  ~OneSided() { fail(Status::kClosed); }
  OneSided(const OneSided&) = delete;
  OneSided& operator=(const OneSided&) = delete;

  // Sends the message that asks. The answer is written to `sink`; `request` begins and gets the
  // outcome. Throws std::bad_alloc: then nothing has happened.
  void ask(PeerId peer, const SendDescriptor& asking, Segments sink, Request& request);
  // Handles the RESULT of a message that asked. Returns false if no request waits for it.
  bool handle_result(MessageId id, Status status);

  Request* find_pending(MessageId id) override {
    return state_ == nullptr ? nullptr : state_->pending.find(id);
  }
  void remove_pending(Request& request) override { state_->pending.remove(request); }
  void answer(const Asker& asker, std::span<const std::byte> bytes) override;
  void answer_with_copy(const Asker& asker, std::span<const std::byte> bytes) override;

  // The bytes of `range` are about to be gone: copies the answers that lie there. Calls
  // moved(request, from, to, size) for each answer whose packets refer to them; they now lie at
  // `to`.
  template <typename Moved>
  void move_out_of(std::span<const std::byte> range, Moved moved) {
    if (state_ == nullptr) return;
    for (Answer& answer : state_->answers) {
      const auto was = answer.copy_out_of(range);
      if (!was.empty()) moved(answer.request, was, answer.copy.data());
    }
  }

  // The peer is gone: unanswered requests finish with `status`.
  void fail(Status status) {
    if (state_ != nullptr) state_->pending.fail(status);
  }
  std::size_t pending() const { return state_ == nullptr ? 0 : state_->pending.size(); }

 private:
  // An answer that could not be copied into a packet at once.
  struct Answer : boost::intrusive::list_base_hook<> {
    Answer(OneSided& one_sided, const Asker& asker)
        : owner(one_sided), allowance(asker.allowance), charge(asker.charge) {
      request.user = this;
      request.on_done = [](Request& done) { static_cast<Answer*>(done.user)->handle_delivered(); };
    }
    void handle_delivered();
    // Copies the bytes if they lie in `range`; returns where they were, empty if elsewhere.
    std::span<const std::byte> copy_out_of(std::span<const std::byte> range);

    OneSided& owner;
    AllowanceGranted& allowance;
    std::uint64_t charge;
    Request request;
    std::vector<std::byte> copy;  // of the bytes, once they had to move
  };
  // A request whose message could not be copied into a packet at once.
  struct RequestCopy {
    Request request;
    std::vector<std::byte> bytes;
  };
  using Answers = boost::intrusive::list<Answer, boost::intrusive::constant_time_size<false>>;

  struct RmaState {
    PendingRequests pending;
    Answers answers;
  };

  static std::unique_ptr<RequestCopy> copy_of(const SendDescriptor& asking);
  bool answer_at_once(const Asker& asker, ConstSegments bytes);
  Answer& add_answer(const Asker& asker);
  RmaState& state() {
    if (state_ == nullptr) state_ = std::make_unique<RmaState>();
    return *state_;
  }

  Outbox& outbox_;
  std::unique_ptr<RmaState> state_;  // made when first used: most peers never ask
};

}  // namespace pullman::message
