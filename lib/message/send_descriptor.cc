#include "message/send_descriptor.h"

#include <cstring>

#include "base/check.h"

namespace pullman::message {

namespace {

std::span<const Segment> segments_of(const Operation& op) {
  return {op.segments->data(), op.special.segment_count};
}

// Calls visit(segment, bytes before it) for each segment.
template <typename Visit>
void for_each_segment(const Operation& op, Visit visit) {
  std::uint64_t before = 0;
  for (const Segment& segment : segments_of(op)) {
    visit(segment, before);
    before += segment.size;
  }
}

// Returns the segment that holds byte `at`, from there on; empty behind the last segment.
std::span<std::byte> rest_of_segment(const Operation& op, std::uint64_t at) {
  std::span<std::byte> rest;
  for_each_segment(op, [&](const Segment& segment, std::uint64_t before) {
    if (at < before || at - before >= segment.size) return;
    rest = std::span(segment.at, segment.size).subspan(at - before);
  });
  return rest;
}

template <typename Bytes>
void note_segments(Operation& op, std::span<const std::span<Bytes>> segments) {
  op.special.segment_count = 0;
  op.buffer = segments.empty() ? nullptr : const_cast<std::byte*>(segments.front().data());
  if (segments.size() < 2) return;
  PULLMAN_CHECK(op.segments != nullptr);
  for (const auto& segment : segments) {
    if (segment.empty()) continue;
    (*op.segments)[op.special.segment_count++] = {const_cast<std::byte*>(segment.data()),
                                                  segment.size()};
  }
}

}  // namespace

void make_room(Operation& op, std::size_t segments) {
  if (segments < 2 || op.segments != nullptr) return;
  op.segments = std::make_unique<std::array<Segment, kMaxSegments>>();
}

void describe(Operation& op, const SendDescriptor& descriptor) {
  note_segments(op, descriptor.segments);
  op.size = descriptor.total();
  op.special.is_special = true;
  op.lead = descriptor.lead;
  op.special.wire_kind = descriptor.kind;
  op.special.lead_bytes = descriptor.lead_bytes;
  op.special.wants_result = descriptor.wants_result;
  op.special.has_result = false;
  op.special.wants_arrival = descriptor.wants_arrival;
  op.special.is_own_copy = descriptor.is_own_copy;
  op.special.has_priority = descriptor.has_priority;
  op.special.is_solicited = descriptor.is_solicited;
  op.asker = descriptor.asker;
  op.special.packs = descriptor.packer != nullptr;
  if (descriptor.packer != nullptr) op.packer = *descriptor.packer;
}

void copy_out(const Operation& op, std::uint64_t at, std::span<std::byte> out) {
  const std::size_t lead = op.special.lead_bytes;
  if (at < lead && !out.empty()) {
    const std::size_t of_lead = std::min<std::size_t>(lead - at, out.size());
    std::memcpy(out.data(), op.lead.data() + at, of_lead);
    out = out.subspan(of_lead);
    at += of_lead;
  }
  if (out.empty()) return;
  at -= lead;
  if (op.special.packs) return op.packer.pack(op.packer.user, at, out);
  if (op.special.segment_count == 0) {
    std::memcpy(out.data(), op.buffer + at, out.size());
    return;
  }
  while (!out.empty()) {
    const auto from = rest_of_segment(op, at);
    const std::size_t length = std::min(from.size(), out.size());
    std::memcpy(out.data(), from.data(), length);
    out = out.subspan(length);
    at += length;
  }
}

std::span<const std::byte> one_place(const Operation& op, std::uint64_t at) {
  const std::size_t lead = op.special.lead_bytes;
  if (at < lead || op.special.packs) return {};
  if (op.special.segment_count != 0) return rest_of_segment(op, at - lead);
  return {op.buffer + (at - lead), op.size - at};
}

void describe_sink(Operation& op, Segments segments) {
  op.size = 0;
  for (const auto& segment : segments) op.size += segment.size();
  note_segments(op, segments);
}

void scatter(const Operation& op, std::uint64_t at, std::span<const std::byte> data) {
  while (!data.empty()) {
    const auto to = rest_of_segment(op, at);
    if (to.empty()) return;
    const std::size_t length = std::min(to.size(), data.size());
    std::memcpy(to.data(), data.data(), length);
    data = data.subspan(length);
    at += length;
  }
}

std::span<std::byte> one_place_of_sink(const Operation& op, std::uint64_t at) {
  if (op.special.segment_count != 0) return rest_of_segment(op, at);
  return at < op.size ? std::span(op.buffer, op.size).subspan(at) : std::span<std::byte>{};
}

}  // namespace pullman::message
