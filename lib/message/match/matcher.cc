#include "message/match/matcher.h"

#include <bit>
#include <iterator>

#include "base/check.h"
#include "message/multi_receive.h"

namespace pullman::message {

Matcher::Posted& Matcher::list_of(const Operation& receive) {
  if (!is_hashed(receive.peer, receive.ignore)) return wild_;
  return exact_[bucket_of(receive.peer, receive.tag)];
}

// Rehashes all receives and messages: at most once for each bit to leave out.
bool Matcher::leave_out_of_hash(Tag bits) {
  if (std::popcount(unhashed_ | bits) > kMaxUnhashed) return false;
  Posted all;
  for (Posted& list : exact_) all.splice(all.end(), list);
  all.splice(all.end(), wild_);
  all.sort([](const auto& one, const auto& other) { return one.order < other.order; });
  unhashed_ |= bits;
  while (!all.empty()) {
    Operation& receive = all.front();
    all.pop_front();
    list_of(receive).push_back(receive);
  }
  arrived_.leave_out_of_hash(unhashed_, in_order_);
  return true;
}

Unexpected* Matcher::find_or_post(Request& receive) {
  Operation& op = Operation::of(receive);
  const Want want{op.peer, op.tag, op.ignore};
  if (!make_hashed(want)) [[unlikely]] {
    Unexpected* const message = find_any(want);
    if (message == nullptr) post(op, wild_);
    return message;
  }
  if (!arrived_.empty()) {
    if (Unexpected* const message = arrived_.find(op.peer, op.tag, op.ignore)) return message;
  }
  post(op, exact_[bucket_of(op.peer, op.tag)]);
  return nullptr;
}

Request* Matcher::take_posted(PeerId peer, Tag tag, std::uint64_t bytes) {
  if (posted_count_ == 0) return nullptr;
  Posted* list = &exact_[bucket_of(peer, tag)];
  Operation* best = nullptr;
  for (auto& op : *list) {
    if (((op.tag ^ tag) & ~op.ignore) == 0 && op.peer == peer) [[likely]] {
      best = &op;
      break;
    }
  }
  for (auto& op : wild_) {
    if (best != nullptr && op.order > best->order) break;
    if (Want{op.peer, op.tag, op.ignore}.fits(peer, tag)) {
      best = &op;
      list = &wild_;
      break;
    }
  }
  if (best == nullptr) return nullptr;
  if (best->special.is_shared) [[unlikely]]
    return &taker(*best->request, bytes);
  remove(*best->request, *list);
  return best->request;
}

Request& Matcher::taker(Request& receive, std::uint64_t bytes) {
  auto& op = Operation::of(receive);
  if (op.special.is_shared) [[unlikely]] {
    auto& shared = MultiReceive::State::of(receive);
    Request& part = shared.take_part(bytes);
    if (!shared.used_up()) return part;
    if (op.queue.is_linked()) remove(receive);
    op.finish(Status::kOk, 0);
    return part;
  }
  if (op.queue.is_linked()) remove(receive);
  return receive;
}

void Matcher::remove(Request& receive) {
  remove(receive, list_of(Operation::of(receive)));
}

void Matcher::remove(Request& receive, Posted& list) {
  PULLMAN_DCHECK(Operation::of(receive).queue.is_linked());
  list.erase(list.iterator_to(Operation::of(receive)));
  --posted_count_;
}

void Matcher::add(Unexpected& message) {
  arrived_.add(message);
  in_order_.push_back(message);
  if (new_ == nullptr) new_ = &message;
}

Unexpected* Matcher::behind(Unexpected& message) {
  const auto next = std::next(in_order_.iterator_to(message));
  return next == in_order_.end() ? nullptr : &*next;
}

Unexpected* Matcher::find_any(const Want& want) {
  for (Unexpected& message : in_order_) {
    if (want.fits(message.peer, message.tag)) return &message;
  }
  return nullptr;
}

void Matcher::remove(Unexpected& message) {
  arrived_.remove(message);
  if (&message == new_) pass(message);
  in_order_.erase(in_order_.iterator_to(message));
}

Request* Matcher::posted_for(PeerId peer) const {
  if (posted_count_ == 0) return nullptr;
  for (const Posted& list : exact_) {
    for (const auto& op : list) {
      if (op.peer == peer) return op.request;
    }
  }
  for (const auto& op : wild_) {
    if (op.peer == peer) return op.request;
  }
  return nullptr;
}

Request* Matcher::any_posted() {
  for (Posted& list : exact_) {
    if (!list.empty()) return list.front().request;
  }
  return wild_.empty() ? nullptr : wild_.front().request;
}

}  // namespace pullman::message
