#include "engine/sending.h"

#include "channel/run.h"

namespace pullman::engine {

using message::Operation;
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

// A send that is done when it is copied cannot wait for anything.
bool is_valid(const SendOptions& options) {
  return options.space < kSpaces &&
         !(options.only_copy && (options.synchronous || options.until_delivered));
}

}  // namespace

static_assert(kSpaces == wire::kSpacesOnWire);

// To leave at once is the fast path: nothing is queued or in flight, so nothing can be overtaken
// and no ACK has to be waited for.
Way Sending::way_to(const Peer& peer) const {
  if (peer.ready.is_linked() || peer.may_share || peer.phase != Phase::kConnected ||
      peer.outbox.queued_packets() != 0)
    return Way::kLater;
  if (const MemoryRail* memory = peer.memory_rail()) {
    return memory->is_answered() && peer.flows() ? Way::kMemoryAtOnce : Way::kLater;
  }
  const Rail* rail = &peer.home;
  if (peer.rails != nullptr) [[unlikely]] {
    rail = const_cast<Peer&>(peer).rail(peer.rails->small_rail);
    if (!usable(*rail)) return Way::kLater;
  }
  const bool none_in_flight =
      rail->link.in_flight() == 0 ||
      (acks_.deferred().rail == rail && rail->link.acks_all(acks_.deferred().header));
  return none_in_flight && rail->resolved() ? Way::kNicAtOnce : Way::kLater;
}

// Returns why nothing can be sent to the peer; kOk if it can.
Status Sending::why_not(const Peer* peer) const {
  if (lifecycle_.closing()) return Status::kClosed;
  if (peer == nullptr) return Status::kUnknownPeer;
  if (peer->phase < Phase::kClosing) return Status::kOk;
  return peer->phase == Phase::kGone ? peer->why : Status::kPeerClosed;
}

Status Sending::refuse(PeerId id, Tag tag, Status why, Request& request) {
  Operation& op = Operation::of(request);
  op.begin(Operation::Kind::kSend, id, tag);
  op.finish(why, 0);
  return why;
}

// Sends what was accepted for the peer, or begins to, unless it waits for the peer's turn. A packet
// of tiny messages leaves without all that serve() looks at.
void Sending::depart(Instant now, Peer& peer, Way way, std::uint64_t bytes) noexcept {
  if (!peer.alarm.checked_in()) lifecycle_.arm(now, peer);
  if (way == Way::kLater) return transmitter_.wait_for_turn(peer);
  ++stats_.fast_path_sends;
  if (bytes <= tiny_bytes_ && peer.outbox.queued_packets() != 0) {
    bool left = false;
    if (way == Way::kMemoryAtOnce) {
      left = transmitter_.send_at_once_by_memory(now, peer, *peer.memory->rail);
    } else {
      Rail& rail = *peer.rail(peer.rails == nullptr ? 0 : peer.rails->small_rail);
      if (peer.rails != nullptr) peer.outbox.set_packet_bytes(rail.packet_bytes);
      left = rail.link.may_send() && transmitter_.send_new(now, rail, Leaves::kAlone);
    }
    // If packets are shorter than tiny messages may be, the message takes two.
    if (!left || peer.outbox.queued_packets() != 0) ready_.mark(peer);
  } else if (transmitter_.serve(now, peer)) {
    ready_.mark(peer);
  }
  nics_.flush();
  ack_handler_.handle_deferred(now);
}

Status Sending::send(Instant now, const Departure& departure, PeerId id, Tag tag,
                     std::span<const std::byte> bytes, Request& request) {
  if (!request.done()) return Status::kBusy;
  Peer* peer = departure.peer;
  Status refused = Status::kOk;
  if (lifecycle_.closing()) {
    refused = Status::kClosed;
  } else if (peer == nullptr) {
    refused = Status::kUnknownPeer;
  } else if (bytes.size() > wire::kMaxMessageBytes) {
    refused = Status::kInvalidArgument;
  } else if (peer->phase >= Phase::kClosing) {
    refused = peer->phase == Phase::kGone ? peer->why : Status::kPeerClosed;
  }
  if (refused != Status::kOk) return refuse(id, tag, refused, request);
  const bool copied = peer->outbox.send(id, tag, bytes, request);
  note_sent(bytes.size());
  depart(now, *peer, departure.way, bytes.size());
  return copied ? Status::kOk : request.status();
}

Status Sending::send_copy(Instant now, const Departure& departure, const SendOp& op,
                          Request& request) {
  const Status refused = why_not(departure.peer);
  if (refused != Status::kOk) return refuse(op.peer, op.tag, refused, request);
  const message::SmallMessage message{.kind = kind_of_message(op.options),
                                      .tag = op.tag,
                                      .immediate = op.options.immediate.value_or(0),
                                      .bytes = op.segments[0]};
  if (!departure.peer->outbox.send_copy(op.peer, message, request)) return Status::kBusy;
  note_sent(message.bytes.size());
  depart(now, *departure.peer, departure.way, message.bytes.size());
  return Status::kOk;
}

Status Sending::submit(Instant now, const SendOp& op, Request& request) {
  return submit(now, departure(op.peer), op, request);
}

Status Sending::submit(Instant now, const Departure& departure, const SendOp& op,
                       Request& request) {
  if (!request.done()) return Status::kBusy;
  const bool packs = op.packer != nullptr && (op.packer->pack != nullptr || op.length == 0);
  const bool sane =
      is_valid(op.options) && (op.packer == nullptr || (packs && op.segments.empty()));
  if (!sane) return refuse(op.peer, op.tag, Status::kInvalidArgument, request);
  if (op.options.only_copy && op.segments.size() == 1) {
    return send_copy(now, departure, op, request);
  }
  SendDescriptor descriptor = descriptor_for(op.tag, op.options);
  descriptor.packer = op.packer;
  descriptor.segments = op.segments;
  descriptor.size = op.packer != nullptr ? op.length : message::size_of_all(op.segments);
  return start(now, departure, op.peer, descriptor, request);
}

Status Sending::start(Instant now, const Departure& departure, PeerId id,
                      const SendDescriptor& descriptor, Request& request) {
  if (!request.done()) return Status::kBusy;
  Peer* peer = departure.peer;
  Status refused = why_not(peer);
  const bool sane =
      descriptor.segments.size() <= kMaxSegments && descriptor.size <= wire::kMaxMessageBytes / 2;
  if (refused == Status::kOk && !sane) refused = Status::kInvalidArgument;
  if (refused != Status::kOk) return refuse(id, descriptor.tag, refused, request);
  message::make_room(Operation::of(request), descriptor.segments.size());
  const Status status = peer->outbox.send(id, descriptor, request);
  if (status == Status::kBusy) return status;
  note_sent(descriptor.size);
  depart(now, *peer, departure.way, descriptor.size);
  return request.status();
}

Status Sending::ask(Instant now, PeerId id, const SendDescriptor& question, Segments sink,
                    Request& request) {
  if (!request.done()) return Status::kBusy;
  Peer* peer = peers_.find(id);
  const Status refused = why_not(peer);
  if (refused != Status::kOk) return refuse(id, question.tag, refused, request);
  const Way way = way_to(*peer);
  peer->one_sided.ask(id, question, sink, request);
  ++stats_.messages_sent;
  depart(now, *peer, way, question.total());
  return request.status();
}

}  // namespace pullman::engine
