#include "message/rx/placement.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "message/send_descriptor.h"
#include "pullman/request.h"

namespace pullman::message {
namespace {

bool is_held(const InMessage& message) {
  return message.state != InState::kFilling && message.state != InState::kOver;
}

// Keeps bytes of the lead (immediate data), which matching does not need, in the receive's
// operation. Leads that were acted on have been read before.
void place_lead(InMessage& message, std::uint64_t offset, std::span<const std::byte> data) {
  if (wire::class_of(message.kind) != wire::Class::kMessage || message.receive == nullptr) return;
  const std::size_t length =
      std::min<std::size_t>(data.size(), wire::lead_bytes(message.kind) - offset);
  std::memcpy(Operation::of(*message.receive).lead.data() + offset, data.data(), length);
}

}  // namespace

bool has_place(InMessage& message, std::pmr::memory_resource& memory) noexcept try {
  if (message.state == InState::kFilling || message.bytes != nullptr) return true;
  message.bytes = static_cast<std::byte*>(memory.allocate(message.wanted, 1));
  message.room = message.wanted;
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

std::span<std::byte> place_of(const InMessage& message, std::uint64_t offset, std::size_t length) {
  if (is_held(message)) return {message.bytes + offset, length};
  const std::size_t lead = wire::lead_bytes(message.kind);
  if (message.state != InState::kFilling || offset < lead) return {};
  offset -= lead;
  if (offset > message.room || length > message.room - offset) return {};
  if (message.bytes != nullptr) return {message.bytes + offset, length};
  const auto sink = one_place_of_sink(Operation::of(*message.receive), offset);
  return sink.size() < length ? std::span<std::byte>{} : sink.first(length);
}

void place_bytes(InMessage& message, std::uint64_t offset, std::span<const std::byte> data) {
  if (message.state != InState::kFilling) {
    if (data.data() == message.bytes + offset) return;
    std::memcpy(message.bytes + offset, data.data(), data.size());
    return;
  }
  if (message.kind != 0) {
    const std::size_t lead = wire::lead_bytes(message.kind);
    if (offset < lead) {
      place_lead(message, offset, data);
      data = data.subspan(std::min<std::size_t>(data.size(), lead - offset));
    }
    offset = offset < lead ? 0 : offset - lead;
  }
  if (offset >= message.room || data.empty()) return;
  if (message.bytes == nullptr) {
    const Operation& op = Operation::of(*message.receive);
    if (one_place_of_sink(op, offset).data() != data.data()) scatter(op, offset, data);
  } else if (message.bytes + offset != data.data()) {
    std::memcpy(message.bytes + offset, data.data(),
                std::min<std::size_t>(data.size(), message.room - offset));
  }
}

void redirect(InMessage& message, std::byte* bytes, std::size_t room,
              std::pmr::memory_resource& memory) {
  std::byte* const held = message.bytes;
  const std::size_t held_bytes = message.room;
  message.state = InState::kFilling;
  message.bytes = bytes;
  message.room = room;
  if (held == nullptr) return;
  message.arrived.for_each([&](Range range) {
    place_bytes(message, range.begin, {held + range.begin, range.end - range.begin});
  });
  memory.deallocate(held, held_bytes, 1);
}

void release_place(InMessage& message, std::pmr::memory_resource& memory) {
  if (message.bytes == nullptr || !is_held(message)) return;
  memory.deallocate(message.bytes, message.room, 1);
  message.bytes = nullptr;
}

void BytesInOrder::put(std::span<const std::byte> data) {
  const std::size_t fits = std::min(data.size(), buffer_.size());
  if (fits > 0) std::memcpy(buffer_.data(), data.data(), fits);
  buffer_ = buffer_.subspan(fits);
  most_ -= data.size();
  taken_ += data.size();
}

BytesInOrder bytes_behind(const InMessage& message, const wire::Frame& chunk) {
  const std::uint64_t begin = message.arrived.prefix();
  const bool same = chunk.total == 0 || (chunk.tag == message.tag && chunk.total == message.total &&
                                         chunk.kind == message.kind);
  const std::size_t lead = wire::lead_bytes(message.kind);
  if (message.state != InState::kFilling || !message.arrived.in_order() || !same ||
      begin != chunk.offset + chunk.data.size() || begin < lead) {
    return {};
  }
  const std::size_t at = std::min<std::size_t>(begin - lead, message.room);
  if (message.room == at) return {message.wanted - begin, {}};
  if (message.bytes != nullptr) {
    return {message.wanted - begin, std::span(message.bytes, message.room).subspan(at)};
  }
  const auto sink = one_place_of_sink(Operation::of(*message.receive), at);
  return {std::min<std::uint64_t>(message.wanted - begin, sink.size()), sink};
}

}  // namespace pullman::message
