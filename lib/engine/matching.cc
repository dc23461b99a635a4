#include "engine/matching.h"

#include <new>

#include "message/multi_receive.h"
#include "message/operation.h"
#include "message/tx/fragments.h"
#include "wire/kind.h"

namespace pullman::engine {

using message::Operation;

namespace {

// Returns what the program is told of a message; nothing if its first bytes, which say more of it,
// have not arrived.
std::optional<Probe> tell_of(const message::Unexpected& message) {
  const std::size_t lead = wire::lead_bytes(message.kind);
  if (!message::has_lead(message)) return std::nullopt;
  Probe found{message.peer, message.tag, message.total - lead, {}, {}};
  if (wire::has_immediate(message.kind))
    found.immediate = wire::read_immediate(message::lead_of(message));
  return found;
}

}  // namespace

Status Matching::receive(Instant now, PeerId source, Tag tag, Tag ignore,
                         std::span<std::byte> buffer, Request& request) {
  if (!request.done()) return Status::kBusy;
  auto& op = Operation::of(request);
  op.begin(Operation::Kind::kReceive, source, tag);
  op.ignore = ignore;
  op.buffer = buffer.data();
  op.size = buffer.size();
  return match_or_post(now, request);
}

// Gives a receive an unexpected message that it matches, or posts it.
Status Matching::match_or_post(Instant now, Request& request) noexcept {
  auto& op = Operation::of(request);
  const PeerId source = op.peer;
  message::Matcher& matcher = matchers_.of(request);
  if (lifecycle_.closing()) {
    op.finish(Status::kClosed, 0);
    return Status::kClosed;
  }
  Peer* named = source == kAnyPeer ? nullptr : peers_.find(source);
  if (source != kAnyPeer && named == nullptr) {
    op.finish(Status::kUnknownPeer, 0);
    return Status::kUnknownPeer;
  }
  const bool gone = named != nullptr && named->phase == Phase::kGone;
  const auto find = [&] {
    return gone ? matcher.find({source, op.tag, op.ignore}) : matcher.find_or_post(request);
  };
  while (message::Unexpected* message = find()) {
    Peer& from = *peers_.find(message->peer);
    Request& taker = matcher.taker(request, message->total - wire::lead_bytes(message->kind));
    from.inbox.attach(*message, taker);
    follow_up(now, from, !taker.done());
    if (&taker == &request || request.done()) return request.status();
  }
  if (gone) {
    op.finish(named->why, 0);
    return named->why;
  }
  if (named != nullptr && !named->alarm.checked_in()) lifecycle_.arm(now, *named);
  return Status::kPending;
}

bool Matching::cancel(Request& request) {
  auto& op = Operation::of(request);
  if (op.kind != Operation::Kind::kReceive || !op.queue.is_linked()) return false;
  message::Matcher* const matcher = matchers_.find(op.special.wire_kind);
  if (matcher == nullptr) return false;  // the request is another context's
  matcher->remove(request);
  op.finish(Status::kCancelled, 0);
  return true;
}

Status Matching::submit(Instant now, const ReceiveOp& op, Request& request) {
  if (!request.done()) return Status::kBusy;
  const bool is_space = op.options.space < kSpaces;
  if (is_space && !matchers_.make(op.options.space)) throw std::bad_alloc();
  auto& operation = Operation::of(request);
  message::make_room(operation, op.segments.size());
  operation.begin(Operation::Kind::kReceive, op.source, op.tag);
  if (op.segments.size() > kMaxSegments || !is_space) {
    operation.finish(Status::kInvalidArgument, 0);
    return Status::kInvalidArgument;
  }
  operation.ignore = op.ignore;
  message::describe_sink(operation, op.segments);
  operation.special.wire_kind = op.options.space;
  return match_or_post(now, request);
}

Status Matching::submit(Instant now, const ReceiveOp& op, std::span<std::byte> buffer,
                        MultiReceive& receive) {
  if (!receive.idle()) return Status::kBusy;
  const bool is_space = op.options.space < kSpaces;
  if (is_space && !matchers_.make(op.options.space)) throw std::bad_alloc();
  auto& state = MultiReceive::State::of(receive);
  Request& posted = state.posted();
  auto& operation = Operation::of(posted);
  state.begin(buffer);
  operation.begin(Operation::Kind::kReceive, op.source, op.tag);
  if (state.used_up() || !is_space) {
    operation.finish(Status::kInvalidArgument, 0);
    return Status::kInvalidArgument;
  }
  operation.ignore = op.ignore;
  operation.special.wire_kind = op.options.space;
  operation.special.is_shared = true;
  match_or_post(now, posted);
  return receive.status();
}

std::optional<Probe> Matching::probe(PeerId source, Tag tag, Tag ignore, std::uint8_t space) {
  if (space >= kSpaces) return std::nullopt;
  message::Matcher* const matcher = matchers_.find(space);
  const message::Unexpected* message =
      matcher == nullptr ? nullptr : matcher->find({source, tag, ignore});
  return message == nullptr ? std::nullopt : tell_of(*message);
}

std::optional<Probe> Matching::next_unexpected(std::uint8_t space) {
  message::Matcher* const matcher = space < kSpaces ? matchers_.find(space) : nullptr;
  message::Unexpected* const message = matcher == nullptr ? nullptr : matcher->first_new();
  if (message == nullptr) return std::nullopt;
  auto found = tell_of(*message);
  if (found) matcher->pass(*message);
  return found;
}

std::optional<Probe> Matching::claim(PeerId source, Tag tag, Tag ignore, std::uint8_t space) {
  auto probed = probe(source, tag, ignore, space);
  if (!probed) return std::nullopt;
  message::Unexpected& message = *matchers_.find(space)->find({source, tag, ignore});
  probed->claimed = {message.peer, message.id};
  peers_.find(message.peer)->inbox.claim(message);
  return probed;
}

Status Matching::receive_claimed(Instant now, const Claimed& claimed, Segments segments,
                                 Request& request) {
  if (!request.done()) return Status::kBusy;
  auto& op = Operation::of(request);
  message::make_room(op, segments.size());
  op.begin(Operation::Kind::kReceive, claimed.source, 0);
  Peer* peer = peers_.find(claimed.source);
  auto* message = peer == nullptr ? nullptr : peer->inbox.find_claimed(claimed.message);
  if (message == nullptr || segments.size() > kMaxSegments) {
    const bool lost = message == nullptr && peer != nullptr && peer->phase == Phase::kGone;
    op.finish(lost ? peer->why : Status::kInvalidArgument, 0);
    return request.status();
  }
  message::describe_sink(op, segments);
  peer->inbox.attach_claimed(*message, request);
  follow_up(now, *peer, !request.done());
  return request.status();
}

Status Matching::discard(Instant now, const Claimed& claimed) noexcept {
  Peer* peer = peers_.find(claimed.source);
  auto* message = peer == nullptr ? nullptr : peer->inbox.find_claimed(claimed.message);
  if (message == nullptr) return Status::kInvalidArgument;
  peer->inbox.discard(*message);
  follow_up(now, *peer, false);
  return Status::kOk;
}

// An unexpected message was matched or discarded: its sender may have to be told.
void Matching::follow_up(Instant now, Peer& peer, bool more_to_come) noexcept {
  if (peer.phase == Phase::kGone) return;
  if (peer.inbox.has_frames()) ready_.mark(peer);
  if (more_to_come && !peer.alarm.checked_in()) lifecycle_.arm(now, peer);
}

}  // namespace pullman::engine
