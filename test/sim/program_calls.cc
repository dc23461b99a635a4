// The API calls of a program: which one, with what arguments, and what its result must be.
#include <fmt/format.h>

#include <algorithm>

#include "sim/draw.h"
#include "sim/program.h"

namespace pullman::sim {
namespace {

bool is_gone(Status status) {
  return status == Status::kUnreachable || status == Status::kPeerClosed ||
         status == Status::kPeerDied || status == Status::kPeerRestarted ||
         status == Status::kRefused || status == Status::kUnknownPeer;
}

}  // namespace

void Program::operate() {
  if (!known_.empty()) bad_heads_.meddle(known_[posts_ % known_.size()].id, shared_.addresses);
  const std::uint64_t receive_weight =
      plan_.late_receives ? plan_.receive_weight / 8 : plan_.receive_weight;
  std::uint64_t choice = random_.below(plan_.send_weight + receive_weight + plan_.connect_weight +
                                       plan_.cancel_weight + plan_.probe_weight +
                                       plan_.disconnect_weight + plan_.access_weight);
  const auto is = [&](std::uint64_t weight) {
    if (choice < weight) return true;
    choice -= weight;
    return false;
  };
  if (known_.empty() || is(plan_.connect_weight)) return connect();
  if (is(plan_.send_weight)) return send();
  if (is(receive_weight)) return receive();
  if (is(plan_.cancel_weight)) return cancel();
  if (is(plan_.probe_weight)) return probe();
  if (is(plan_.access_weight)) return access();
  disconnect();
}

void Program::connect() {
  auto host = static_cast<std::uint8_t>(random_.below(shared_.addresses.size()));
  if (host == node_.host()) host = static_cast<std::uint8_t>((host + 1) % shared_.addresses.size());
  const auto to_call = node_.address_to_call(shared_.addresses[host]);
  if (!to_call) {
    if (node_.plan().relay != "on") {
      shared_.findings.report(fmt::format("host {}: no way to host {}", node_.host(), host));
    }
    return;
  }
  const auto connected = node_.engine().connect(node_.local_now(), *to_call);
  note("connect to host {}: {}, peer {}.{}", host, name(connected.status), connected.peer.index,
       connected.peer.generation);
  if (connected.status != Status::kOk) {
    // Peers that are still closing count, too.
    if (connected.status != Status::kTooManyPeers &&
        !shared_.excuses.allows(node_.host(), host, connected.status)) {
      shared_.findings.report(fmt::format("host {}: connect to host {} says {}", node_.host(), host,
                                          name(connected.status)));
    }
    return;
  }
  for (Known& known : known_) {
    if (known.id == connected.peer) {
      known.host = host;
      return;
    }
    if (known.host == host && !shared_.excuses.any(node_.host(), host) &&
        node_.engine().inspector().peer_state(known.id) == PeerState::kConnected) {
      shared_.findings.report(
          fmt::format("host {}: connecting twice to host {} gave two handles", node_.host(), host));
    }
  }
  known_.push_back({.id = connected.peer, .host = host, .met = false});
}

void Program::send() {
  if (pending_.size() >= plan_.max_pending) return;
  if (const Known* known = any_known()) send_to(*known);
}

void Program::say_last(std::uint8_t host) {
  const auto all = known_;
  for (const Known& known : all) {
    const auto its = known.host ? known.host : shared_.ledger.host_of(node_.process(), known.id);
    const bool connected = node_.engine().inspector().peer_state(known.id) == PeerState::kConnected;
    if (its == host && connected) send_to(known);
  }
  node_.touched();
}

void Program::send_to(const Known& known) {
  const PeerId peer = known.id;
  const auto host = known.host ? known.host : shared_.ledger.host_of(node_.process(), peer);
  const std::size_t size = percent(random_, 10) ? 0 : log_between(random_, 1, plan_.max_message);
  Operation& operation = take(size);
  operation.kind = Operation::Kind::kSend;
  operation.size = size;
  operation.name = shared_.ledger.next(shared_.ledger.open(node_.process(), peer, host));
  const Tag label = random_.below(plan_.labels);
  const bool named = size < kNameBytes || percent(random_, 50);
  const Tag tag = named ? named_tag(operation.name, label) : label;
  fill({operation.buffer.get(), size}, operation.name);
  const Status status = begin_send(peer, tag, operation);
  note("send message {} of conversation {} to peer {}.{}, tag {:x}, {} B: {}", operation.name.index,
       operation.name.conversation, peer.index, peer.generation, tag, size, name(status));
  if (status != operation.request.status()) {
    shared_.findings.report(fmt::format("send() returned {}, its request says {}", name(status),
                                        name(operation.request.status())));
  }
  if (status == Status::kPending) return;
  if (is_gone(status)) forget(peer);
  finished(operation);
  pending_.back().swap(free_.emplace_back());
  pending_.pop_back();
}

Status Program::begin_send(PeerId peer, Tag tag, Operation& operation) {
  const std::span<const std::byte> bytes(operation.buffer.get(), operation.size);
  operation.options = {};
  const bool plain = plan_.options_percent == 0 || !percent(random_, plan_.options_percent);
  if (plain) {
    shared_.ledger.sent(operation.name, tag, bytes.size(), {});
    return node_.engine().sending().send(node_.local_now(), peer, tag, bytes, operation.request);
  }
  SendOptions& options = operation.options;
  options.space = draw_space();
  options.synchronous = percent(random_, 20);
  options.until_delivered = percent(random_, 20);
  options.priority = percent(random_, 20);
  if (percent(random_, 40)) options.immediate = random_.next();
  shared_.ledger.sent(operation.name, tag, bytes.size(), options);
  const std::size_t cut = random_.below(bytes.size() + 1);
  const std::span<const std::byte> segments[] = {bytes.first(cut), bytes.subspan(cut)};
  const std::size_t count = percent(random_, 50) ? 2 : 1;
  const std::span<const std::byte> whole[] = {bytes};
  if (cut % 2 == 0 && !options.synchronous && !options.until_delivered) {
    const Status copied = try_copy(peer, tag, bytes, operation);
    if (copied != Status::kBusy) return copied;
  }
  return node_.engine().sending().submit(
      node_.local_now(),
      {.peer = peer,
       .tag = tag,
       .segments = count == 2 ? ConstSegments(segments) : ConstSegments(whole),
       .options = options},
      operation.request);
}

// With kBusy nothing may have happened.
Status Program::try_copy(PeerId peer, Tag tag, std::span<const std::byte> bytes,
                         Operation& operation) {
  SendOptions options = operation.options;
  options.only_copy = true;
  const std::span<const std::byte> whole[] = {bytes};
  const Status status = node_.engine().sending().submit(
      node_.local_now(),
      {.peer = peer, .tag = tag, .segments = ConstSegments(whole), .options = options},
      operation.request);
  if (status == Status::kPending) shared_.findings.report("a send of only a copy is pending");
  return status;
}

std::uint8_t Program::draw_space() {
  if (plan_.options_percent == 0 || percent(random_, 60)) return 0;
  return kDrawnSpaces[random_.below(kDrawnSpaces.size())];
}

// Does a one-sided operation with a peer whose host is known.
void Program::access() {
  const Known* known = any_known();
  const auto host = known->host ? known->host : shared_.ledger.host_of(node_.process(), known->id);
  if (!host) return work_.operate({});
  work_.operate(RemoteWork::Target{known->id, *host,
                                   shared_.ledger.open(node_.process(), known->id, known->host)});
}

// Some match early, some late, some one certain message only.
void Program::receive() {
  if (pending_.size() >= plan_.max_pending) return;
  Wanted wanted;
  wanted.source = percent(random_, 50) ? kAnyPeer : draw_source();
  wanted.capacity = percent(random_, 75) ? plan_.max_message
                                         : log_between(random_, kNameBytes, plan_.max_message);
  wanted.capacity = std::max(wanted.capacity, kNameBytes);
  wanted.space = draw_space();
  const Tag label = random_.below(plan_.labels);
  switch (random_.below(5)) {
    case 0:
      wanted.ignore = ~Tag{0};
      break;  // any tag
    case 1:
      wanted.tag = label, wanted.ignore = ~kLabelBits;
      break;  // one label
    case 2:
      wanted.tag = label, wanted.ignore = ~kLabelBits | 3;
      break;  // a few labels
    case 3:
      wanted.tag = label;
      break;  // exactly, unnamed
    default:  // one message
      const auto tag = shared_.ledger.awaited(node_.process(), random_.next());
      if (!tag) return;
      wanted.tag = *tag;
  }
  if (plan_.shared_percent != 0 && percent(random_, plan_.shared_percent)) {
    return post_shared(wanted);
  }
  post_receive(wanted, false);
}

// Always leaves room for a name, by which messages without one in their tag are identified.
void Program::post_shared(Wanted wanted) {
  wanted.capacity = log_between(random_, kNameBytes, 6 * plan_.max_message + kNameBytes);
  wanted.order = ++posts_;
  Operation& operation = take(wanted.capacity);
  operation.kind = Operation::Kind::kReceive;
  operation.wanted = wanted;
  operation.many = std::make_unique<MultiReceive>(1 + random_.below(12), kNameBytes);
  const Status status =
      node_.engine().matching().submit(node_.local_now(),
                                       {.source = wanted.source,
                                        .tag = wanted.tag,
                                        .ignore = wanted.ignore,
                                        .options = {.space = wanted.space}},
                                       {operation.buffer.get(), wanted.capacity}, *operation.many);
  note("receive {} of many from peer {}.{}, tag {:x} ignoring {:x}, {} B: {}", posts_,
       static_cast<std::int32_t>(wanted.source.index), wanted.source.generation, wanted.tag,
       wanted.ignore, wanted.capacity, name(status));
  reap();
}

void Program::post_receive(const Wanted& wanted, bool must_match) {
  Operation& operation = take(wanted.capacity);
  operation.kind = Operation::Kind::kReceive;
  operation.wanted = wanted;
  operation.wanted.order = ++posts_;
  operation.must_match = must_match;
  const std::span<std::byte> buffer(operation.buffer.get(), wanted.capacity);
  Status status = Status::kOk;
  if (plan_.options_percent == 0) {
    status = node_.engine().matching().receive(node_.local_now(), wanted.source, wanted.tag,
                                               wanted.ignore, buffer, operation.request);
  } else {
    const std::size_t cut = random_.below(buffer.size() + 1);
    const std::span<std::byte> segments[] = {buffer.first(cut), buffer.subspan(cut)};
    const std::span<std::byte> whole[] = {buffer};
    status = node_.engine().matching().submit(
        node_.local_now(),
        {.source = wanted.source,
         .tag = wanted.tag,
         .ignore = wanted.ignore,
         .segments = percent(random_, 50) ? Segments(segments) : Segments(whole),
         .options = {.space = wanted.space}},
        operation.request);
  }
  note("receive {} from peer {}.{}, tag {:x} ignoring {:x}, {} B: {}", posts_,
       static_cast<std::int32_t>(wanted.source.index), wanted.source.generation, wanted.tag,
       wanted.ignore, wanted.capacity, name(status));
  if (status == Status::kPending) return;
  finished(operation);
  pending_.back().swap(free_.emplace_back());
  pending_.pop_back();
}

void Program::cancel() {
  if (pending_.empty()) return;
  Operation& operation = *pending_[random_.below(pending_.size())];
  if (operation.kind != Operation::Kind::kReceive || operation.must_match ||
      operation.posted().done()) {
    return;
  }
  const bool taken_back = node_.engine().matching().cancel(operation.posted());
  note("cancel receive {}: {}", operation.wanted.order, taken_back);
  operation.cancelled = taken_back;
  if (taken_back != (operation.posted().status() == Status::kCancelled)) {
    shared_.findings.report(fmt::format("cancel() said {}, the request {}", taken_back,
                                        name(operation.posted().status())));
  }
}

// A receive with the tag of a probed message must get that message.
void Program::probe() {
  const PeerId source = percent(random_, 50) ? kAnyPeer : draw_source();
  const bool any_tag = percent(random_, 60);
  const Tag label = random_.below(plan_.labels);
  const auto probe =
      node_.engine().matching().probe(source, any_tag ? 0 : label, any_tag ? ~Tag{0} : ~kLabelBits);
  if (!probe) return;
  note("probe: tag {:x}, {} B", probe->tag, probe->length);
  shared_.ledger.probed(node_.process(), *probe);
  if ((probe->tag & kNamedTag) == 0) return;
  const Wanted wanted{.source = probe->source,
                      .tag = probe->tag,
                      .ignore = 0,
                      .capacity = std::max<std::size_t>(plan_.max_message, kNameBytes)};
  post_receive(wanted, true);
}

void Program::disconnect() {
  const Known* known = any_known();
  if (known == nullptr) return;
  const PeerId peer = known->id;
  const auto host = known->host ? known->host : shared_.ledger.host_of(node_.process(), peer);
  note("disconnect peer {}.{}", peer.index, peer.generation);
  if (host) {
    shared_.excuses.add(node_.host(), *host, AllowedFailures::kGoodbye);
  } else {
    shared_.excuses.add_all(node_.host(), AllowedFailures::kGoodbye);
  }
  node_.engine().disconnect(node_.local_now(), peer);
  forget(peer);
}

Program::Known* Program::any_known() {
  return known_.empty() ? nullptr : &known_[random_.below(known_.size())];
}

void Program::forget(PeerId id) {
  std::erase_if(known_, [&](const Known& known) { return known.id == id; });
}

PeerId Program::draw_source() {
  const Known* known = any_known();
  return known == nullptr ? kAnyPeer : known->id;
}

}  // namespace pullman::sim
