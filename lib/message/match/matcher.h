// Tag matching: posted receives on one side, unexpected messages on the other.
//
// A message goes to the earliest-posted receive that fits; a receive takes the earliest-arrived
// message that fits. Receives that name source and tag are found by hash; those with a wildcard are
// in a list of their own, and the post order decides between the two. A receive may ignore a few
// bits of the tag and still be hashed: MPI libraries keep protocol bits there and ignore them in
// every receive. Bits that such receives ignore are left out of the hash from then on. Does not
// know how messages arrive or where their bytes are. One per engine and space.
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

// What a receive or a probe matches.
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

  // Returns the unexpected message that a receive fits and changes neither, or posts the receive
  // and returns null.
  Unexpected* find_or_post(Request& receive);

  // Returns the receive for a message of `bytes` bytes from `peer`: a posted one, which it removes,
  // or a part of one that takes many messages. Returns null if none fits.
  Request* take_posted(PeerId peer, Tag tag, std::uint64_t bytes);
  // `receive` fits a message of `bytes` bytes and may be posted. Returns what takes the message:
  // the receive, or a part of one that takes many. Removes the receive, unless it takes more
  // messages.
  Request& taker(Request& receive, std::uint64_t bytes);

  // Removes a posted receive.
  void remove(Request& receive);

  // Adds a message whose turn has come and that no posted receive fits.
  void add(Unexpected& message);

  // Returns the unexpected message that fits, without removing it; null if none does.
  Unexpected* find(const Want& want) {
    if (arrived_.empty()) return nullptr;
    return make_hashed(want) ? arrived_.find(want.source, want.tag, want.ignore) : find_any(want);
  }
  // Returns the earliest unexpected message that was not passed yet, or null.
  Unexpected* first_new() const { return new_; }
  // This message is not new any more, nor is any before it.
  void pass(Unexpected& message) { new_ = behind(message); }

  // Removes an unexpected message.
  void remove(Unexpected& message);

  // Calls visit(message) for each unexpected message of that peer; it may remove that one.
  template <typename Visit>
  void for_each_of(PeerId peer, Visit&& visit) {
    for (auto at = in_order_.begin(); at != in_order_.end();) {
      Unexpected& message = *at++;
      if (message.peer == peer) visit(message);
    }
  }

  // Returns a posted receive that names this peer as its source, or null.
  Request* posted_for(PeerId peer) const;
  // Returns any posted receive, or null.
  Request* any_posted();

  std::size_t posted() const { return posted_count_; }
  // Calls visit(source, order) for each posted receive that names a source; no two have an order.
  template <typename Visit>
  void for_each_source(Visit&& visit) const {
    if (posted_count_ == 0) return;
    for (const Posted& list : exact_) {
      for (const Operation& receive : list) visit(receive.peer, receive.order);
    }
    for (const Operation& receive : wild_) {
      if (receive.peer != kAnyPeer) visit(receive.peer, receive.order);
    }
  }

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
  // Most bits that are left out of the hash: so no bucket has the messages of more than 64 tags
  // that differ in nothing else.
  static constexpr int kMaxUnhashed = 6;

  std::size_t bucket_of(PeerId peer, Tag tag) const {
    const std::uint64_t mixed =
        ((tag & ~unhashed_) ^ (std::uint64_t{peer.index} << 40)) * 0x9E3779B97F4A7C15u;
    return mixed >> 54;
  }
  // Whether everything that fits is in one bucket.
  bool is_hashed(PeerId source, Tag ignore) const {
    return source != kAnyPeer && (ignore & ~unhashed_) == 0;
  }
  // The same; a few ignored bits are left out of the hash to make it so.
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
  Unexpected* new_ = nullptr;           // the first of `in_order_` that was not passed
  std::uint64_t posts_ = 0;
  std::size_t posted_count_ = 0;
};

}  // namespace pullman::message
