#include "message/operation.h"

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "base/check.h"

namespace pullman {
namespace {

// This is the program's mistake, but the next packet would be written into freed memory.
[[noreturn, gnu::cold]] void destroyed_while_pending() {
  std::fputs(
      "pullman: a Request was destroyed while still pending: wait for it, cancel() it, or close() "
      "its context first\n",
      stderr);
  std::abort();
}

}  // namespace

Request::Request() {
  static_assert(sizeof(Operation) <= kOperationBytes && alignof(Operation) <= alignof(Request));
  new (operation_.data()) Operation(*this);
}

Request::~Request() {
  if (!done()) destroyed_while_pending();
  std::destroy_at(&Operation::of(*this));
}

void Request::Operation::begin(Kind what, PeerId whom, Tag label) {
  PULLMAN_DCHECK(request->done() && !queue.is_linked() && !all.is_linked());
  kind = what;
  peer = whom;
  tag = label;
  sent = granted = 0;
  packets = 0;
  special = {};
  request->tag_ = label;
  request->source_ = whom;
  request->length_ = 0;
  request->message_length_ = 0;
  request->status_.store(Status::kPending, std::memory_order_relaxed);
  request->has_immediate_ = false;
}

void Request::Operation::finish(Status status, std::size_t length) {
  PULLMAN_DCHECK(!queue.is_linked() && !all.is_linked());
  Request& mine = *request;
  kind = Kind::kIdle;
  mine.length_ = length;
  // From the store on another thread may reuse or destroy it.
  auto* const tell = mine.on_done;
  mine.status_.store(status, std::memory_order_release);
  if (tell != nullptr) tell(mine);
}

void Request::Operation::finish_copied(PeerId whom, Tag label, std::size_t length) {
  request->tag_ = label;
  request->source_ = whom;
  request->message_length_ = 0;
  request->has_immediate_ = false;
  finish(Status::kOk, length);
}

void Request::Operation::finish_receive(Status status, PeerId source, Tag label, std::size_t length,
                                        std::uint64_t message_length) {
  request->source_ = source;
  request->tag_ = label;
  request->message_length_ = message_length;
  finish(status, length);
}

void Request::Operation::take_immediate(std::uint64_t immediate) {
  request->immediate_ = immediate;
  request->has_immediate_ = true;
}

}  // namespace pullman
