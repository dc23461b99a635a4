// Gets and atomics between this process and one peer: those of ours that are not answered, and our
// answers to the peer's that have not been delivered. One per peer.
//
// Requests and answers are messages; the outbox sends them. Regions, and how either arrives, are
// not known here.
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

  // Sends the message that asks. The answer goes to `sink`, and the outcome to `request`, which
  // begins. Throws std::bad_alloc: then nothing has happened.
  void ask(PeerId peer, const SendDescriptor& asking, Segments sink, Request& request);
  // Of a message that asked. False: nothing waits for that.
  bool handle_result(MessageId id, Status status);

  Request* find_pending(MessageId id) override {
    return state_ == nullptr ? nullptr : state_->pending.find(id);
  }
  void remove_pending(Request& request) override { state_->pending.remove(request); }
  void answer(const Asker& asker, std::span<const std::byte> bytes) override;
  void answer_with_copy(const Asker& asker, std::span<const std::byte> bytes) override;

  // The bytes of that range will be gone. Calls moved(request, from, to, size) for each answer
  // whose packets refer to them: from now on they lie at `to`.
  template <typename Moved>
  void move_out_of(std::span<const std::byte> range, Moved moved) {
    if (state_ == nullptr) return;
    for (Answer& answer : state_->answers) {
      const auto was = answer.copy_out_of(range);
      if (!was.empty()) moved(answer.request, was, answer.copy.data());
    }
  }

  // The peer is gone: what is not answered finishes with that status.
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
    // If its bytes lie in that range they are in `copy` from now on; returns where they were.
    std::span<const std::byte> copy_out_of(std::span<const std::byte> range);

    OneSided& owner;
    AllowanceGranted& allowance;
    std::uint64_t charge;
    Request request;
    std::vector<std::byte> copy;  // of the bytes, if they are not where they were
  };
  // A message that asks and could not be copied into a packet at once.
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
