#include "message/match/unexpected_table.h"

#include <new>

#include "base/check.h"

namespace pullman::message {

void UnexpectedTable::append(Bucket& bucket, Unexpected& message) {
  message.links.next = nullptr;
  if (bucket == nullptr) {
    message.links.previous = &message;
    bucket = &message;
    return;
  }
  Unexpected& last = *bucket->links.previous;
  message.links.previous = &last;
  last.links.next = &message;
  bucket->links.previous = &message;
}

void UnexpectedTable::add(Unexpected& message) noexcept {
  if (++size_ > buckets_) [[unlikely]]
    grow();
  message.begin_links();
  append(at(place_of(message.peer, message.tag)), message);
}

void UnexpectedTable::remove(Unexpected& message) noexcept {
  Bucket& bucket = at(place_of(message.peer, message.tag));
  PULLMAN_DCHECK(bucket != nullptr);
  if (message.links.next != nullptr) {
    message.links.next->links.previous = message.links.previous;
  } else {
    bucket->links.previous = message.links.previous;
  }
  if (bucket == &message) {
    bucket = message.links.next;
  } else {
    message.links.previous->links.next = message.links.next;
  }
  message.end_links();
  if (--size_ + kMinBuckets < buckets_) [[unlikely]]
    shrink();
}

// Adds a bucket and moves into it what belongs there from the next bucket to be split. Without
// memory it adds none, and buckets hold more messages each.
void UnexpectedTable::grow() noexcept {
  const std::size_t made = buckets_;
  if (made / kMinBuckets > more_.size()) try {
      more_.push_back(std::make_unique<Segment>());
    } catch (const std::bad_alloc&) {
      return;
    }
  Bucket moving = std::exchange(at(made - level_), nullptr);
  if (++buckets_ == 2 * level_) level_ *= 2;
  while (moving != nullptr) {
    Unexpected& message = *moving;
    moving = message.links.next;
    append(at(place_of(message.peer, message.tag)), message);
  }
}

// Moves the last bucket's messages back to the one that was split for it. Messages of one source
// and tag are in one bucket only, so their order stays.
void UnexpectedTable::shrink() noexcept {
  if (buckets_ == kMinBuckets) return;
  if (buckets_ == level_) level_ /= 2;
  Bucket moving = std::exchange(at(--buckets_), nullptr);
  Bucket& to = at(buckets_ - level_);
  while (moving != nullptr) {
    Unexpected& message = *moving;
    moving = message.links.next;
    append(to, message);
  }
  // One spare segment stays: the next message may need it.
  while (more_.size() > buckets_ / kMinBuckets + 1) more_.pop_back();
}

}  // namespace pullman::message
