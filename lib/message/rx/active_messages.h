// The messages of one peer that have begun to arrive and are not over. An inbox has one of these
// only while there are such messages: most peers have none.
//
// Finds messages and counts them by what they wait for; the inbox decides what becomes of them.
#pragma once

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>
#include <cstdint>

#include "base/check.h"
#include "message/rx/in_message.h"

namespace pullman::message {

class ActiveMessages {
 public:
  // --- all of them: those that were made and are not destroyed

  void note_made() { ++alive_; }
  // Returns true if it was the last.
  bool note_destroyed() { return --alive_ == 0; }
  // Restores the initial state.
  void reset() {
    PULLMAN_DCHECK(alive_ == 0);
    current_ = nullptr;
  }

  // --- incomplete ones: not short, and some bytes or the turn are outstanding

  void add_incomplete(InMessage& message) {
    incomplete_.insert(message);
    ++waiting_turn_;
    current_ = &message;
  }
  void remove_incomplete(InMessage& message) {
    if (!message.by_id.is_linked()) return;
    incomplete_.erase(incomplete_.iterator_to(message));
    if (current_ == &message) current_ = nullptr;
  }
  // Returns null if the message has not begun, is short, or is complete.
  InMessage* find(MessageId id) {
    if (current_ != nullptr && current_->id == id) return current_;
    const auto found = incomplete_.find(id);
    if (found == incomplete_.end()) return nullptr;
    return current_ = &*found;
  }
  // Does the same without making it current(), for a message that the next frames need not be
  // about.
  InMessage* peek(MessageId id) {
    const auto found = incomplete_.find(id);
    return found == incomplete_.end() ? nullptr : &*found;
  }
  const InMessage* peek(MessageId id) const {
    const auto found = incomplete_.find(id);
    return found == incomplete_.end() ? nullptr : &*found;
  }
  // Returns the message that was found last, or null if it is not incomplete any more.
  InMessage* current() { return current_; }
  const InMessage* current() const { return current_; }
  // Returns the message with the lowest id, or null.
  InMessage* first_incomplete() { return incomplete_.empty() ? nullptr : &*incomplete_.begin(); }
  // Calls visit(message) for each in the order of ids, until that returns false.
  template <typename Visit>
  void for_each_incomplete(Visit visit) {
    for (InMessage& message : incomplete_) {
      if (!visit(message)) return;
    }
  }
  template <typename Visit>
  void for_each_incomplete(Visit visit) const {
    for (const InMessage& message : incomplete_) {
      if (!visit(message)) return;
    }
  }

  // --- messages whose turn is outstanding: an earlier one has not begun

  void add_early(ShortMessage& message) {
    message.begin_early();
    early_.insert(message);
    ++waiting_turn_;
  }
  void remove_early(ShortMessage& message) {
    early_.erase(early_.iterator_to(message));
    message.end_early();
    --waiting_turn_;
  }
  // Finds a short one, which is complete.
  ShortMessage* find_early(MessageId id) {
    const auto found = early_.find(id);
    return found == early_.end() ? nullptr : &as_short(*found);
  }
  ShortMessage* first_early() { return early_.empty() ? nullptr : &as_short(*early_.begin()); }
  // A message that is not short has had its turn.
  void note_turn() { --waiting_turn_; }
  bool any_waits_turn() const { return waiting_turn_ > 0; }

  bool expects_more() const { return !incomplete_.empty() || !early_.empty(); }

  // --- messages that are being filled: their bytes go to a receive, a region, or nowhere

  void note_filling() { ++filling_; }
  void note_answer() { ++answers_; }
  void note_not_filling(const InMessage& message) {
    --filling_;
    if (wire::class_of(message.kind) == wire::Class::kAnswer) --answers_;
  }
  std::uint32_t filling() const { return filling_; }
  std::uint32_t answers() const { return answers_; }

  // --- claimed ones: taken out of the matching by the program

  void add_claimed(Unexpected& message) { claimed_.push_back(message); }
  void remove_claimed(Unexpected& message) { claimed_.erase(claimed_.iterator_to(message)); }
  Unexpected* find_claimed(MessageId id) {
    for (Unexpected& message : claimed_) {
      if (message.id == id) return &message;
    }
    return nullptr;
  }
  Unexpected* first_claimed() { return claimed_.empty() ? nullptr : &claimed_.front(); }

  // --- messages that a frame is due for: a GRANT or a RESULT

  void add_due(InMessage& message) { due_.push_back(message); }
  void add_due(ShortMessage& message) { short_due_.push_back(message); }
  InMessage* first_due() { return due_.empty() ? nullptr : &as_whole(due_.front()); }
  ShortMessage* first_short_due() {
    return short_due_.empty() ? nullptr : &as_short(short_due_.front());
  }
  void remove_first_due() { due_.pop_front(); }
  void remove_due(ShortMessage& message) {
    if (message.in_order.is_linked()) short_due_.erase(short_due_.iterator_to(message));
  }
  bool any_due() const { return !due_.empty() || !short_due_.empty(); }

 private:
  struct IdOf {
    using type = MessageId;
    MessageId operator()(const Unexpected& message) const { return message.id; }
  };
  using ById = boost::intrusive::set<
      InMessage,
      boost::intrusive::member_hook<InMessage, decltype(InMessage::by_id), &InMessage::by_id>,
      boost::intrusive::key_of_value<IdOf>, boost::intrusive::constant_time_size<false>>;
  using Early = boost::intrusive::set<
      Unexpected, boost::intrusive::member_hook<Unexpected, Unexpected::IdHook, &Unexpected::early>,
      boost::intrusive::key_of_value<IdOf>, boost::intrusive::constant_time_size<false>>;
  using Due = boost::intrusive::list<
      Unexpected,
      boost::intrusive::member_hook<Unexpected, Unexpected::ListHook, &Unexpected::to_grant>,
      boost::intrusive::constant_time_size<false>>;
  using Listed = boost::intrusive::list<
      Unexpected,
      boost::intrusive::member_hook<Unexpected, Unexpected::ListHook, &Unexpected::in_order>,
      boost::intrusive::constant_time_size<false>>;

  ById incomplete_;
  Early early_;
  InMessage* current_ = nullptr;  // one of `incomplete_`, or null
  Due due_;
  Listed short_due_;  // in state kOver
  Listed claimed_;
  std::uint32_t waiting_turn_ = 0;  // messages in state kWaitingTurn: all of `early_`, and others
  std::uint32_t filling_ = 0;       // messages in state kFilling
  std::uint32_t answers_ = 0;       // those of them that are answers
  std::uint32_t alive_ = 0;
};

}  // namespace pullman::message
