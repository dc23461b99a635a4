// Converts the structures that describe an operation (fi_msg and its like) to calls as values.
#pragma once

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "ofi/calls.h"

namespace pullman::ofi {

// What a message is matched by: nothing, or a tag and, for receives, the bits of it to ignore.
struct Label {
  Tag tag = 0;
  Tag ignore = 0;
};

inline Label label_of(const fi_msg&) {
  return {};
}
inline Label label_of(const fi_msg_tagged& message) {
  return {message.tag, message.ignore};
}

inline constexpr Space space_of(const fi_msg&) {
  return Space::kMessages;
}
inline constexpr Space space_of(const fi_msg_tagged&) {
  return Space::kTagged;
}

template <typename Message>
ReceiveCall receive_call(const Message& message, std::uint64_t flags) {
  const Label label = label_of(message);
  return {.space = space_of(message),
          .segments = message.msg_iov,
          .count = message.iov_count,
          .from = message.addr,
          .tag = label.tag,
          .ignore = label.ignore,
          .context = message.context,
          .flags = flags};
}

template <typename Message>
SendCall send_call(const Message& message, std::uint64_t flags) {
  return {.space = space_of(message),
          .segments = message.msg_iov,
          .count = message.iov_count,
          .to = message.addr,
          .tag = label_of(message).tag,
          .data = message.data,
          .context = message.context,
          .flags = flags};
}

// An operation on memory of a peer has one target segment.
template <typename Message>
bool has_one_target(const Message& message) {
  return message.rma_iov_count == 1 && message.rma_iov != nullptr;
}

enum class Way { kRead, kWrite };

inline MemoryCall memory_call(Way way, const fi_msg_rma& message, std::uint64_t flags) {
  return {.writes = way == Way::kWrite,
          .segments = message.msg_iov,
          .count = message.iov_count,
          .at = message.addr,
          .offset = message.rma_iov[0].addr,
          .key = message.rma_iov[0].key,
          .data = message.data,
          .context = message.context,
          .flags = flags};
}

// `call` gives its kind, what it compares with and where its results go.
inline AtomicCall atomic_call(const fi_msg_atomic& message, std::uint64_t flags, AtomicCall call) {
  call.type = message.datatype;
  call.op = message.op;
  call.operands = {message.msg_iov, message.iov_count};
  call.at = message.addr;
  call.offset = message.rma_iov[0].addr;
  call.key = message.rma_iov[0].key;
  call.context = message.context;
  call.flags = flags;
  return call;
}

}  // namespace pullman::ofi
