// Tag matching: posted receives on one side, unexpected messages on the other.
//
// A message goes to the earliest-posted receive that fits; a receive takes the earliest-arrived
// message that fits. Receives that name source and tag are found by hash; those with a wildcard
// stand in a list of their own, and the post order decides between the two. A few bits of the tag
// may be ignored all the same: MPI libraries keep there what is their protocol's, and ignore it in
// every receive. What such receives ignore is left out of the hash from then on. Does not know how
// messages arrive or where their bytes are. One per engine.
#pragma once

#include <array>
#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <cstdint>

#include "message/match/unexpected_table.h"
#include "message/operation.h"
#include "pullman/request.h"
#include "pullman/types.h"

namespace pullman::message {

// What a receive or a probe asks for.
struct Want {
  PeerId source;
  Tag tag = 0;
  Tag ignore = 0;

  bool fits(PeerId peer, Tag other) const {
    return ((tag ^ other) & ~ignore) == 0 && (source == kAnyPeer || source == peer);
  }
};

class Matcher {
 public:
  Matcher() = default;
  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;

  // The unexpected message that a receive fits; it stays, and so does the receive. Null: there is
  // none, and the receive is posted.
  Unexpected* find_or_post(Request& receive);

  // The receive that a message of `bytes` from `peer` goes to: one that was posted and is so no
  // longer, or a part of one that takes many. Null if none fits.
  Request* take_posted(PeerId peer, Tag tag, std::uint64_t bytes);
  // A receive that fits a message of `bytes`, posted or not: what takes it, the receive itself or a
  // part of it. Then it is not posted any more, unless it takes more messages.
  Request& taker(Request& receive, std::uint64_t bytes);

  // The receive is no longer posted.
  void remove(Request& receive);

  // A message whose turn came and that no posted receive fits.
  void add(Unexpected& message);

  // The unexpected message that fits; it stays. Null if none does.
  Unexpected* find(const Want& want) {
    if (arrived_.empty()) return nullptr;
    return make_hashed(want) ? arrived_.find(want.source, want.tag, want.ignore) : find_any(want);
  }
  // The earliest unexpected message that was not passed yet; null: there is none.
  Unexpected* first_new() const { return new_; }
  // It is not new any more, nor is any before it.
  void pass(Unexpected& message) { new_ = behind(message); }

  // The message is no longer unexpected.
  void remove(Unexpected& message);

  // Calls visit(message) for each unexpected message of that peer; it may remove that.
  template <typename Visit>
  void for_each_of(PeerId peer, Visit&& visit) {
    for (auto at = in_order_.begin(); at != in_order_.end();) {
      Unexpected& message = *at++;
      if (message.peer == peer) visit(message);
    }
  }

  // A posted receive that names this peer as its source; null when there is none left.
  Request* posted_for(PeerId peer) const;
  // Any posted receive.
  Request* any_posted();

  std::size_t posted() const { return posted_count_; }

 private:
  using Posted =
      boost::intrusive::list<Operation,
                             boost::intrusive::member_hook<Operation, QueueHook, &Operation::queue>,
                             boost::intrusive::constant_time_size<false>>;
  using InOrder = boost::intrusive::list<
      Unexpected,
      boost::intrusive::member_hook<Unexpected, Unexpected::ListHook, &Unexpected::in_order>,
      boost::intrusive::constant_time_size<false>>;
  static constexpr std::size_t kBuckets = 1024;
  // Bits that are left out of the hash: so many that no bucket has the messages of more than 64
  // tags that differ in nothing else.
  static constexpr int kMaxUnhashed = 6;

  std::size_t bucket_of(PeerId peer, Tag tag) const {
    const std::uint64_t mixed =
        ((tag & ~unhashed_) ^ (std::uint64_t{peer.index} << 40)) * 0x9E3779B97F4A7C15u;
    return mixed >> 54;
  }
  // What fits is in one bucket.
  bool is_hashed(PeerId source, Tag ignore) const {
    return source != kAnyPeer && (ignore & ~unhashed_) == 0;
  }
  // The same; if few bits are ignored it becomes so.
  bool make_hashed(const Want& want) {
    if (is_hashed(want.source, want.ignore)) [[likely]]
      return true;
    return want.source != kAnyPeer && leave_out_of_hash(want.ignore);
  }
  bool leave_out_of_hash(Tag bits);
  static_assert(kBuckets == std::uint64_t{1} << (64 - 54));
  Unexpected* find_any(const Want& want);
  Unexpected* behind(Unexpected& message);
  Posted& list_of(const Operation& receive);
  void post(Operation& receive, Posted& list) {
    receive.order = ++posts_;
    list.push_back(receive);
    ++posted_count_;
  }
  void remove(Request& receive, Posted& list);

  Tag unhashed_ = 0;                    // bits of a tag that are left out of the hash
  std::array<Posted, kBuckets> exact_;  // receives that name a source and ignore no other bits
  Posted wild_;                         // the others, in post order
  UnexpectedTable arrived_;             // unexpected messages by source and tag
  InOrder in_order_;                    // the same messages, in order of their turns
  Unexpected* new_ = nullptr;           // of these
  std::uint64_t posts_ = 0;
  std::size_t posted_count_ = 0;
};

}  // namespace pullman::message
