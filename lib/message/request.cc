#include "pullman/request.h"

#include <cstdio>
#include <cstdlib>

#include "base/check.h"

namespace pullman {
namespace {

// The program's mistake, not ours; but the next packet would be written into freed memory.
[[noreturn, gnu::cold]] void destroyed_while_pending() {
  std::fputs(
      "pullman: a Request was destroyed while still pending: wait for it, cancel() it, or close() "
      "its context first\n",
      stderr);
  std::abort();
}

}  // namespace

Request::~Request() {
  if (!done()) destroyed_while_pending();
}

void Request::begin(detail::Operation::Kind kind, PeerId peer, Tag tag) {
  PULLMAN_DCHECK(done() && !operation_.queue.is_linked() && !operation_.all.is_linked());
  operation_.kind = kind;
  operation_.peer = peer;
  operation_.tag = tag;
  operation_.sent = operation_.granted = 0;
  operation_.packets = 0;
  operation_.special = {};
  tag_ = tag;
  source_ = peer;
  length_ = 0;
  message_length_ = 0;
  status_.store(Status::kPending, std::memory_order_relaxed);
  has_immediate_ = false;
}

void Request::finish(Status status, std::size_t length) {
  PULLMAN_DCHECK(!operation_.queue.is_linked() && !operation_.all.is_linked());
  operation_.kind = detail::Operation::Kind::kIdle;
  length_ = length;
  // From the store on another thread may take it to be its own again.
  auto* const tell = on_done;
  status_.store(status, std::memory_order_release);
  if (tell != nullptr) tell(*this);
}

void Request::finish_copied(PeerId peer, Tag tag, std::size_t length) {
  tag_ = tag;
  source_ = peer;
  message_length_ = 0;
  has_immediate_ = false;
  finish(Status::kOk, length);
}

void Request::take_immediate(std::uint64_t immediate) {
  immediate_ = immediate;
  has_immediate_ = true;
}

void Request::finish_receive(Status status, PeerId source, Tag tag, std::size_t length,
                             std::uint64_t message_length) {
  source_ = source;
  tag_ = tag;
  message_length_ = message_length;
  finish(status, length);
}

}  // namespace pullman
