// The verbs of the API beyond plain send() and receive(): with options, claimed, one-sided.
#include <algorithm>
#include <new>

#include "base/check.h"
#include "channel/run.h"
#include "engine/engine_impl.h"
#include "message/send_descriptor.h"

namespace pullman::engine {

using message::SendDescriptor;

namespace {

std::uint8_t kind_of_message(const SendOptions& options) {
  return static_cast<std::uint8_t>(wire::kind_of_space(options.space) |
                                   (options.immediate ? wire::kImmediateOfKind : 0) |
                                   (options.synchronous ? wire::kSynchronousOfKind : 0));
}

SendDescriptor descriptor_for(Tag tag, const SendOptions& options) {
  SendDescriptor descriptor;
  descriptor.kind = kind_of_message(options);
  descriptor.tag = tag;
  if (options.immediate) {
    descriptor.lead_bytes =
        static_cast<std::uint8_t>(wire::put_immediate(descriptor.lead.data(), *options.immediate));
  }
  descriptor.wants_result = options.synchronous;
  descriptor.wants_arrival = options.until_delivered;
  descriptor.only_copy = options.only_copy;
  descriptor.is_own_copy = options.is_own_copy;
  descriptor.has_priority = options.priority;
  return descriptor;
}

// One that is copied cannot wait for anything.
bool is_consistent(const SendOptions& options) {
  return options.space < kSpaces &&
         !(options.only_copy && (options.synchronous || options.until_delivered));
}

std::uint64_t size_of_all(Segments pieces) {
  std::uint64_t size = 0;
  for (const auto& piece : pieces) size += piece.size();
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

}  // namespace

static_assert(kMaxAtomicBytes == wire::kMaxAtomicBytes);
static_assert(kSpaces == wire::kSpacesOnWire);

// Why nothing can be sent there; kOk if it can.
Status Engine::Impl::why_not(const Peer* peer) const {
  if (closing_) return Status::kClosed;
  if (peer == nullptr) return Status::kUnknownPeer;
  if (peer->phase < Phase::kClosing) return Status::kOk;
  return peer->phase == Phase::kGone ? peer->why : Status::kPeerClosed;
}

Status Engine::Impl::refuse(PeerId id, Tag tag, Status why, Request& request) {
  request.begin(detail::Operation::Kind::kSend, id, tag);
  request.finish(why, 0);
  return why;
}

// Something was accepted for the peer: it leaves now, or begins to, if nobody is to be waited for.
void Engine::Impl::depart(Instant now, Peer& peer, bool at_once, std::uint64_t bytes) noexcept {
  if (!peer.alarm.checked_in()) arm(now, peer);
  if (!at_once) return wait_for_turn(peer);
  ++stats_.fast_path_sends;
  if (bytes <= config_.tiny_bytes && peer.outbox.queued_packets() != 0) {
    Rail& rail = *peer.rail(peer.rails == nullptr ? 0 : peer.rails->favourite);
    if (peer.rails != nullptr) peer.outbox.set_packet_bytes(rail.packet_bytes);
    const bool left = rail.link.may_send() && send_new(now, rail, Leaves::kAlone);
    // Where packets are shorter than tiny messages may be there are two.
    if (!left || peer.outbox.queued_packets() != 0) mark_ready(peer);
  } else if (serve(now, peer)) {
    mark_ready(peer);
  }
  flush();
  handle_deferred_ack(now);
}

Status Engine::Impl::start(Instant now, PeerId id, const SendDescriptor& descriptor,
                           Request& request) {
  if (!request.done()) return Status::kBusy;
  Peer* peer = peers_.find(id);
  Status refused = why_not(peer);
  const bool sane =
      descriptor.pieces.size() <= kMaxSegments && descriptor.size <= wire::kMaxMessageBytes / 2;
  if (refused == Status::kOk && !sane) refused = Status::kInvalidArgument;
  if (refused != Status::kOk) return refuse(id, descriptor.tag, refused, request);
  const bool at_once = sends_at_once(*peer);
  message::make_room(request.operation(), descriptor.pieces.size());
  const Status status = peer->outbox.send(id, descriptor, request);
  if (status == Status::kBusy) return status;
  ++stats_.messages_sent;
  stats_.bytes_sent += descriptor.size;
  depart(now, *peer, at_once, descriptor.size);
  return request.status();
}

Status Engine::Impl::send_copy(Instant now, const Departure& departure, PeerId id, Tag tag,
                               std::span<const std::byte> bytes, const SendOptions& options,
                               Request& request) {
  if (!request.done()) return Status::kBusy;
  Status refused = why_not(departure.peer);
  if (!is_consistent(options)) refused = Status::kInvalidArgument;
  if (refused != Status::kOk) return refuse(id, tag, refused, request);
  const message::Outbox::Small message{.kind = kind_of_message(options),
                                       .tag = tag,
                                       .immediate = options.immediate.value_or(0),
                                       .bytes = bytes};
  if (!departure.peer->outbox.send_copy(id, message, request)) return Status::kBusy;
  ++stats_.messages_sent;
  stats_.bytes_sent += bytes.size();
  depart(now, *departure.peer, departure.at_once, bytes.size());
  return Status::kOk;
}

Status Engine::Impl::send(Instant now, PeerId id, Tag tag, ConstSegments pieces,
                          const SendOptions& options, Request& request) {
  if (!request.done()) return Status::kBusy;
  if (!is_consistent(options)) return refuse(id, tag, Status::kInvalidArgument, request);
  if (options.only_copy && pieces.size() == 1) {
    return send_copy(now, departure(id), id, tag, pieces[0], options, request);
  }
  SendDescriptor descriptor = descriptor_for(tag, options);
  descriptor.pieces = pieces;
  descriptor.size = message::size_of_all(pieces);
  return start(now, id, descriptor, request);
}

Status Engine::Impl::send(Instant now, PeerId id, Tag tag, const Packer& packer,
                          std::uint64_t length, const SendOptions& options, Request& request) {
  if (!request.done()) return Status::kBusy;
  const bool packs = packer.pack != nullptr || length == 0;
  if (!packs || !is_consistent(options)) return refuse(id, tag, Status::kInvalidArgument, request);
  SendDescriptor descriptor = descriptor_for(tag, options);
  descriptor.packer = &packer;
  descriptor.size = length;
  return start(now, id, descriptor, request);
}

Status Engine::Impl::put(Instant now, PeerId id, const RemotePlace& place, ConstSegments pieces,
                         const PutOptions& options, Request& request) {
  SendDescriptor descriptor;
  descriptor.kind = static_cast<std::uint8_t>(wire::kind_of(wire::Class::kPut) |
                                              (options.immediate ? wire::kImmediateOfKind : 0));
  descriptor.tag = place.key;
  descriptor.lead_bytes = static_cast<std::uint8_t>(
      wire::put_put_lead(descriptor.lead.data(), descriptor.kind,
                         {.immediate = options.immediate.value_or(0), .offset = place.offset}));
  descriptor.pieces = pieces;
  descriptor.size = message::size_of_all(pieces);
  descriptor.wants_result = true;
  descriptor.only_copy = options.only_copy;
  return start(now, id, descriptor, request);
}

// A question, whose answer goes to `sink`.
Status Engine::Impl::ask(Instant now, PeerId id, const SendDescriptor& question, Segments sink,
                         Request& request) {
  if (!request.done()) return Status::kBusy;
  Peer* peer = peers_.find(id);
  const Status refused = why_not(peer);
  if (refused != Status::kOk) return refuse(id, question.tag, refused, request);
  const bool at_once = sends_at_once(*peer);
  peer->one_sided.ask(id, question, sink, request);
  ++stats_.messages_sent;
  depart(now, *peer, at_once, question.total());
  return request.status();
}

Status Engine::Impl::get(Instant now, PeerId id, const RemotePlace& place, Segments pieces,
                         Request& request) {
  if (!request.done()) return Status::kBusy;
  const std::uint64_t length = size_of_all(pieces);
  if (pieces.size() > kMaxSegments || length > wire::kMaxMessageBytes / 2) {
    return refuse(id, place.key, Status::kInvalidArgument, request);
  }
  SendDescriptor question;
  question.kind = wire::kind_of(wire::Class::kGet);
  question.tag = place.key;
  question.lead_bytes = static_cast<std::uint8_t>(
      wire::put_get_lead(question.lead.data(), {.offset = place.offset, .length = length}));
  return ask(now, id, question, pieces, request);
}

Status Engine::Impl::atomic(Instant now, PeerId id, const RemotePlace& place, const Atomic& atomic,
                            Request& request) {
  if (!request.done()) return Status::kBusy;
  if (!is_sane(atomic)) return refuse(id, place.key, Status::kInvalidArgument, request);
  SendDescriptor question;
  question.kind = wire::kind_of(wire::Class::kAtomic);
  question.tag = place.key;
  question.lead_bytes = static_cast<std::uint8_t>(wire::put_atomic_lead(
      question.lead.data(), {.offset = place.offset,
                             .op = static_cast<std::uint8_t>(atomic.op),
                             .type = static_cast<std::uint8_t>(atomic.type),
                             .fetches = !atomic.result.empty(),
                             .count = static_cast<std::uint32_t>(atomic.count)}));
  // A question is as long as its answer: so its charge covers that (wire.md 10.6).
  static constexpr std::array<std::byte, kMaxAtomicBytes> kNothing{};
  const auto operand = atomic.op == AtomicOp::kRead
                           ? std::span<const std::byte>(kNothing).first(atomic.result.size())
                           : atomic.operand;
  const std::span<const std::byte> sent[] = {operand, atomic.compare};
  question.pieces = ConstSegments(sent).first(atomic.compare.empty() ? 1 : 2);
  question.size = message::size_of_all(question.pieces);
  const std::span<std::byte> sink[] = {atomic.result};
  return ask(now, id, question, sink, request);
}

Status Engine::Impl::receive(Instant now, PeerId source, Tag tag, Tag ignore, Segments pieces,
                             const ReceiveOptions& options, Request& request) {
  if (!request.done()) return Status::kBusy;
  const bool is_space = options.space < kSpaces;
  if (is_space && !make_matcher(options.space)) throw std::bad_alloc();
  message::make_room(request.operation(), pieces.size());
  request.begin(detail::Operation::Kind::kReceive, source, tag);
  if (pieces.size() > kMaxSegments || !is_space) {
    request.finish(Status::kInvalidArgument, 0);
    return Status::kInvalidArgument;
  }
  auto& op = request.operation();
  op.ignore = ignore;
  message::describe_sink(op, pieces);
  op.special.wire_kind = options.space;
  return match_or_post(now, request);
}

Status Engine::Impl::receive(Instant now, PeerId source, Tag tag, Tag ignore,
                             std::span<std::byte> buffer, const ReceiveOptions& options,
                             MultiReceive& receive) {
  if (!receive.idle()) return Status::kBusy;
  const bool is_space = options.space < kSpaces;
  if (is_space && !make_matcher(options.space)) throw std::bad_alloc();
  Request& posted = receive.posted();
  receive.begin(buffer);
  posted.begin(detail::Operation::Kind::kReceive, source, tag);
  if (receive.used_up() || !is_space) {
    posted.finish(Status::kInvalidArgument, 0);
    return Status::kInvalidArgument;
  }
  auto& op = posted.operation();
  op.ignore = ignore;
  op.special.wire_kind = options.space;
  op.special.is_shared = true;
  match_or_post(now, posted);
  return receive.status();
}

// Nothing if its first bytes, which say more of it, are still to come.
std::optional<Probe> Engine::Impl::tell_of(const message::Unexpected& message) {
  const std::size_t lead = wire::lead_bytes(message.kind);
  if (!message::has_lead(message)) return std::nullopt;
  Probe found{message.peer, message.tag, message.total - lead, {}, {}};
  if (wire::has_immediate(message.kind))
    found.immediate = wire::read_immediate(message::lead_of(message));
  return found;
}

std::optional<Probe> Engine::Impl::probe(PeerId source, Tag tag, Tag ignore, std::uint8_t space) {
  if (space >= kSpaces) return std::nullopt;
  message::Matcher* const matcher = find_matcher(space);
  const message::Unexpected* message =
      matcher == nullptr ? nullptr : matcher->find({source, tag, ignore});
  return message == nullptr ? std::nullopt : tell_of(*message);
}

std::optional<Probe> Engine::Impl::next_unexpected(std::uint8_t space) {
  message::Matcher* const matcher = space < kSpaces ? find_matcher(space) : nullptr;
  message::Unexpected* const message = matcher == nullptr ? nullptr : matcher->first_new();
  if (message == nullptr) return std::nullopt;
  auto found = tell_of(*message);
  if (found) matcher->pass(*message);
  return found;
}

std::optional<Probe> Engine::Impl::claim(PeerId source, Tag tag, Tag ignore, std::uint8_t space) {
  auto probed = probe(source, tag, ignore, space);
  if (!probed) return std::nullopt;
  message::Unexpected& message = *find_matcher(space)->find({source, tag, ignore});
  probed->claimed = {message.peer, message.id};
  peers_.find(message.peer)->inbox.claim(message);
  return probed;
}

Status Engine::Impl::receive_claimed(Instant now, const Claimed& claimed, Segments pieces,
                                     Request& request) {
  if (!request.done()) return Status::kBusy;
  message::make_room(request.operation(), pieces.size());
  request.begin(detail::Operation::Kind::kReceive, claimed.source, 0);
  Peer* peer = peers_.find(claimed.source);
  auto* message = peer == nullptr ? nullptr : peer->inbox.find_claimed(claimed.message);
  if (message == nullptr || pieces.size() > kMaxSegments) {
    const bool lost = message == nullptr && peer != nullptr && peer->phase == Phase::kGone;
    request.finish(lost ? peer->why : Status::kInvalidArgument, 0);
    return request.status();
  }
  message::describe_sink(request.operation(), pieces);
  peer->inbox.attach_claimed(*message, request);
  look_after_match(now, *peer, !request.done());
  return request.status();
}

Status Engine::Impl::discard_claimed(Instant now, const Claimed& claimed) {
  Peer* peer = peers_.find(claimed.source);
  auto* message = peer == nullptr ? nullptr : peer->inbox.find_claimed(claimed.message);
  if (message == nullptr) return Status::kInvalidArgument;
  peer->inbox.discard(*message);
  look_after_match(now, *peer, false);
  return Status::kOk;
}

// A message that had come was matched: its sender may have to be told.
void Engine::Impl::look_after_match(Instant now, Peer& peer, bool more_to_come) noexcept {
  if (peer.phase == Phase::kGone) return;
  if (peer.inbox.has_frames()) mark_ready(peer);
  if (more_to_come && !peer.alarm.checked_in()) arm(now, peer);
}

std::uint64_t Engine::Impl::add_region(std::span<std::byte> bytes, Access access) {
  std::uint64_t key = random_.next();
  while (!regions_.add(key, bytes, access)) key = random_.next();
  return key;
}

bool Engine::Impl::remove_region(std::uint64_t key) {
  const message::Region* region = regions_.find(key);
  if (region == nullptr) return false;
  const std::span<const std::byte> bytes = region->bytes;
  regions_.remove(key);
  peers_.for_each([&](Peer& peer) {
    peer.one_sided.take_away(bytes, [&](Request& answer, std::span<const std::byte> from,
                                        const std::byte* to) { redirect(peer, answer, from, to); });
  });
  return true;
}

// Packets of that message whose bytes lay there take them from elsewhere.
void Engine::Impl::redirect(Peer& peer, const Request& message, std::span<const std::byte> from,
                            const std::byte* to) {
  const auto redirect_one = [&](Packet* packet) {
    if (packet == nullptr || packet->message != &message || packet->payload == nullptr) return;
    const auto at = reinterpret_cast<std::uintptr_t>(packet->payload);
    const auto begin = reinterpret_cast<std::uintptr_t>(from.data());
    if (at < begin || at - begin >= from.size()) return;  // in its own memory, or done already
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

std::optional<RemoteEvent> Engine::Impl::take_event() {
  auto& events = regions_.events();
  if (events.empty()) return std::nullopt;
  const RemoteEvent event = events.front();
  events.pop_front();
  if (Peer* peer = peers_.find(event.source)) {
    peer->inbox.event_taken();
    if (peer->phase != Phase::kGone && peer->inbox.has_frames()) mark_ready(*peer);
  }
  return event;
}

}  // namespace pullman::engine
