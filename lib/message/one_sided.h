// What one peer and we asked of each other's regions: our gets and atomics that are not answered,
// and our answers to its that have not been delivered. One per peer.
//
// Questions and answers are messages; the outbox sends them. Does not know regions, nor how either
// arrives.
#pragma once

#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/sequence.h"
#include "message/allowance.h"
#include "message/asked.h"
#include "message/outbox.h"
#include "message/send_descriptor.h"
#include "pullman/request.h"

namespace pullman::message {

class OneSided {
 public:
  explicit OneSided(Outbox& outbox) : outbox_(outbox) {}
  ~OneSided() { fail(Status::kClosed); }
  OneSided(const OneSided&) = delete;
  OneSided& operator=(const OneSided&) = delete;

  // Sends a question; its answer goes to `sink`, and what became of it to `request`, which begins.
  // Throws std::bad_alloc: nothing has happened.
  void ask(PeerId peer, const SendDescriptor& question, Segments sink, Request& request);

  // What the question of that id waits for; null if that is nothing (any more).
  Request* waiting_for(MessageId id) { return both_ == nullptr ? nullptr : both_->asked.find(id); }
  void answered(Request& request) { both_->asked.remove(request); }
  // False: nothing waits for that.
  bool handle_result(MessageId id, Status status);

  // Sends bytes that stay where they are, unless take_away() says otherwise; `charge` goes back to
  // the allowance when they have been delivered.
  struct Question {
    PeerId peer;  // who asks
    MessageId id = 0;
    AllowanceGranted& allowance;
    std::uint64_t charge = 0;
  };
  void answer(const Question& question, std::span<const std::byte> bytes);
  // The same of bytes that are not there for long.
  void answer_with_copy(const Question& question, std::span<const std::byte> bytes);

  // Bytes of that range will be gone. Calls moved(request, from, to, size) for each answer whose
  // packets refer to them: they lie at `to` from now on.
  template <typename Moved>
  void take_away(std::span<const std::byte> range, Moved moved) {
    if (both_ == nullptr) return;
    for (Answer& answer : both_->answers) {
      const auto was = answer.own_copy_of(range);
      if (!was.empty()) moved(answer.request, was, answer.copy.data());
    }
  }

  void fail(Status status) {
    if (both_ != nullptr) both_->asked.fail(status);
  }
  std::size_t asked() const { return both_ == nullptr ? 0 : both_->asked.size(); }

 private:
  // An answer that could not be copied into a packet at once.
  struct Answer : boost::intrusive::list_base_hook<> {
    Answer(OneSided& whose, const Question& question)
        : owner(whose), allowance(question.allowance), charge(question.charge) {
      request.user = this;
      request.on_done = [](Request& done) { static_cast<Answer*>(done.user)->delivered(); };
    }
    void delivered();
    // Where the bytes were, if they lay in that range: they are in `copy` now.
    std::span<const std::byte> own_copy_of(std::span<const std::byte> range);

    OneSided& owner;
    AllowanceGranted& allowance;
    std::uint64_t charge;
    Request request;
    std::vector<std::byte> copy;  // of the bytes, if they are not where they were
  };
  // A question that could not be copied into a packet at once.
  struct RequestCopy {
    Request request;
    std::vector<std::byte> bytes;
  };
  using Answers = boost::intrusive::list<Answer, boost::intrusive::constant_time_size<false>>;

  struct Both {
    Asked asked;
    Answers answers;
  };

  static std::unique_ptr<RequestCopy> courier_for(const SendDescriptor& question);
  bool answer_at_once(const Question& question, ConstSegments bytes);
  Both& both() {
    if (both_ == nullptr) both_ = std::make_unique<Both>();
    return *both_;
  }

  Outbox& outbox_;
  std::unique_ptr<Both> both_;  // once there was something: most peers never ask
};

}  // namespace pullman::message
