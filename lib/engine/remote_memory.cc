#include "engine/remote_memory.h"

#include <array>

#include "channel/run.h"

namespace pullman::engine {

using message::SendDescriptor;

namespace {

std::uint64_t size_of_all(Segments segments) {
  std::uint64_t size = 0;
  for (const auto& segment : segments) size += segment.size();
  return size;
}

bool is_sane(const Atomic& atomic) {
  if (!is_defined(atomic.op, atomic.type) || atomic.count == 0) return false;
  if (atomic.count > kMaxAtomicBytes) return false;
  const std::size_t bytes = atomic.count * size_of(atomic.type);
  const std::size_t compared = compares(atomic.op) ? bytes : 0;
  const bool reads = atomic.op == AtomicOp::kRead;
  return bytes + compared <= kMaxAtomicBytes && atomic.operand.size() == (reads ? 0 : bytes) &&
         atomic.compare.size() == compared &&
         (atomic.result.size() == bytes || (atomic.result.empty() && !reads));
}

// Makes packets of that message whose bytes are in `from` take them from a copy at `to`.
void redirect(Peer& peer, const Request& message, std::span<const std::byte> from,
              const std::byte* to) {
  const auto redirect_one = [&](Packet* packet) {
    if (packet == nullptr || packet->message != &message || packet->payload == nullptr) return;
    const auto at = reinterpret_cast<std::uintptr_t>(packet->payload);
    const auto begin = reinterpret_cast<std::uintptr_t>(from.data());
    // It is in the packet's own memory, or was redirected already.
    if (at < begin || at - begin >= from.size()) return;
    packet->payload = to + (at - begin);
  };
  const auto redirect_all = [&](channel::PacketQueue& packets) {
    for (Packet& packet : packets) redirect_one(&packet);
  };
  peer.for_each_rail([&](Rail& rail) {
    const auto& window = rail.link.window();
    for (auto n = window.floor(); n < window.next(); ++n) redirect_one(rail.link.find(n));
    redirect_all(rail.link.lost());
  });
  if (peer.rails != nullptr) redirect_all(peer.rails->evacuated);
}

}  // namespace

static_assert(kMaxAtomicBytes == wire::kMaxAtomicBytes);

std::uint64_t RemoteMemory::add_region(std::span<std::byte> bytes, Access access) {
  std::uint64_t key = random_.next();
  while (!regions_.add(key, bytes, access)) key = random_.next();
  return key;
}

bool RemoteMemory::remove_region(std::uint64_t key) noexcept {
  const message::Region* region = regions_.find(key);
  if (region == nullptr) return false;
  const std::span<const std::byte> bytes = region->bytes;
  regions_.remove(key);
  peers_.for_each([&](Peer& peer) {
    peer.one_sided.move_out_of(
        bytes, [&](Request& answer, std::span<const std::byte> from, const std::byte* to) {
          redirect(peer, answer, from, to);
        });
  });
  return true;
}

std::optional<RemoteEvent> RemoteMemory::take_event() {
  auto& events = regions_.events();
  if (events.empty()) return std::nullopt;
  const RemoteEvent event = events.front();
  events.pop_front();
  if (Peer* peer = peers_.find(event.source)) {
    peer->inbox.event_taken();
    if (peer->phase != Phase::kGone && peer->inbox.has_frames()) ready_.mark(*peer);
  }
  return event;
}

Status RemoteMemory::put(Instant now, PeerId id, const RemotePlace& place, ConstSegments segments,
                         const PutOptions& options, Request& request) {
  SendDescriptor descriptor;
  descriptor.kind = static_cast<std::uint8_t>(wire::kind_of(wire::Class::kPut) |
                                              (options.immediate ? wire::kImmediateOfKind : 0));
  descriptor.tag = place.key;
  descriptor.lead_bytes = static_cast<std::uint8_t>(
      wire::put_put_lead(descriptor.lead.data(), descriptor.kind,
                         {.immediate = options.immediate.value_or(0), .offset = place.offset}));
  descriptor.segments = segments;
  descriptor.size = message::size_of_all(segments);
  descriptor.wants_result = true;
  descriptor.only_copy = options.only_copy;
  return sending_.start(now, sending_.departure(id), id, descriptor, request);
}

Status RemoteMemory::get(Instant now, PeerId id, const RemotePlace& place, Segments segments,
                         Request& request) {
  if (!request.done()) return Status::kBusy;
  const std::uint64_t length = size_of_all(segments);
  if (segments.size() > kMaxSegments || length > wire::kMaxMessageBytes / 2) {
    return Sending::refuse(id, place.key, Status::kInvalidArgument, request);
  }
  SendDescriptor question;
  question.kind = wire::kind_of(wire::Class::kGet);
  question.tag = place.key;
  question.lead_bytes = static_cast<std::uint8_t>(
      wire::put_get_lead(question.lead.data(), {.offset = place.offset, .length = length}));
  return sending_.ask(now, id, question, segments, request);
}

Status RemoteMemory::atomic(Instant now, PeerId id, const RemotePlace& place, const Atomic& atomic,
                            Request& request) {
  if (!request.done()) return Status::kBusy;
  if (!is_sane(atomic)) return Sending::refuse(id, place.key, Status::kInvalidArgument, request);
  SendDescriptor question;
  question.kind = wire::kind_of(wire::Class::kAtomic);
  question.tag = place.key;
  question.lead_bytes = static_cast<std::uint8_t>(wire::put_atomic_lead(
      question.lead.data(), {.offset = place.offset,
                             .op = static_cast<std::uint8_t>(atomic.op),
                             .type = static_cast<std::uint8_t>(atomic.type),
                             .fetches = !atomic.result.empty(),
                             .count = static_cast<std::uint32_t>(atomic.count)}));
  // A request is as long as its answer, so that its charge covers the answer (wire.md 10.6).
  static constexpr std::array<std::byte, kMaxAtomicBytes> kNothing{};
  const auto operand = atomic.op == AtomicOp::kRead
                           ? std::span<const std::byte>(kNothing).first(atomic.result.size())
                           : atomic.operand;
  const std::span<const std::byte> sent[] = {operand, atomic.compare};
  question.segments = ConstSegments(sent).first(atomic.compare.empty() ? 1 : 2);
  question.size = message::size_of_all(question.segments);
  const std::span<std::byte> sink[] = {atomic.result};
  return sending_.ask(now, id, question, sink, request);
}

}  // namespace pullman::engine
