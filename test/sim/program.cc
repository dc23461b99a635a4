#include "sim/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "sim/draw.h"

namespace pullman::sim {
namespace {

constexpr std::size_t kGuardBytes = 16;
constexpr std::byte kGuard{0x5A};
constexpr std::byte kScribble{0xEE};
constexpr std::size_t kFinishingReceives = 4;

bool is_gone(Status status) {
  return status == Status::kUnreachable || status == Status::kPeerClosed ||
         status == Status::kPeerRestarted || status == Status::kRefused ||
         status == Status::kUnknownPeer;
}

}  // namespace

Program::Program(Shared& shared, Node& node, const ProgramPlan& plan, std::uint64_t seed)
    : shared_(shared),
      node_(node),
      plan_(plan),
      random_(seed),
      operations_left_(plan.operations),
      next_operation_(node.network_now()) {}

void Program::run() {
  accept();
  reap();
  if (stopped_) return;
  if (mode_ == Mode::kFinishing) {
    keep_receiving();
  } else {
    const Instant now = node_.network_now();
    for (std::size_t i = 0; i < 8 && next_operation_ <= now && operations_left_ != 0; ++i) {
      --operations_left_;
      operate();
      next_operation_ += between(random_, Duration(0), plan_.pace * 2);
    }
    if (operations_left_ != 0) node_.wake_at(std::max(next_operation_, now));
  }
  node_.touched();
}

void Program::accept() {
  while (const auto id = node_.engine().accept()) {
    const bool is_known = std::any_of(known_.begin(), known_.end(),
                                      [&](const Known& known) { return known.id == *id; });
    if (!is_known) known_.push_back({.id = *id, .host = {}});
  }
}

void Program::operate() {
  const std::uint64_t receive_weight =
      plan_.late_receives ? plan_.receive_weight / 8 : plan_.receive_weight;
  std::uint64_t choice =
      random_.below(plan_.send_weight + receive_weight + plan_.connect_weight +
                    plan_.cancel_weight + plan_.probe_weight + plan_.disconnect_weight);
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
  disconnect();
}

void Program::connect() {
  auto host = static_cast<std::uint8_t>(random_.below(shared_.addresses.size()));
  if (host == node_.host()) host = static_cast<std::uint8_t>((host + 1) % shared_.addresses.size());
  const auto connected = node_.engine().connect(node_.local_now(), shared_.addresses[host]);
  note("connect to host {}: {}, peer {}.{}", host, name(connected.status), connected.peer.index,
       connected.peer.generation);
  if (connected.status != Status::kOk) {
    if (!shared_.excuses.allows(node_.host(), host, connected.status)) {
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
    if (known.host == host && node_.engine().peer_state(known.id) == PeerState::kConnected) {
      shared_.findings.report(
          fmt::format("host {}: connecting twice to host {} gave two handles", node_.host(), host));
    }
  }
  known_.push_back({.id = connected.peer, .host = host});
}

void Program::send() {
  if (pending_.size() >= plan_.max_pending) return;
  const Known* known = any_known();
  if (known == nullptr) return;
  const PeerId peer = known->id;
  const auto host = known->host ? known->host : shared_.ledger.host_of(node_.process(), peer);
  const std::size_t size = percent(random_, 10) ? 0 : log_between(random_, 1, plan_.max_message);
  Operation& operation = take(size);
  operation.kind = Operation::Kind::kSend;
  operation.size = size;
  operation.name = shared_.ledger.next(shared_.ledger.open(node_.process(), peer, host));
  const Tag label = random_.below(plan_.labels);
  const bool named = size < kNameBytes || percent(random_, 50);
  const Tag tag = named ? named_tag(operation.name, label) : label;
  fill({operation.buffer.get(), size}, operation.name);
  shared_.ledger.sent(operation.name, tag, size);
  const Status status = node_.engine().send(node_.local_now(), peer, tag,
                                            {operation.buffer.get(), size}, operation.request);
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

// Some are sure to match early, some late, some only a certain message.
void Program::receive() {
  if (pending_.size() >= plan_.max_pending) return;
  Wanted wanted;
  wanted.source = percent(random_, 50) ? kAnyPeer : draw_source();
  wanted.capacity = percent(random_, 75) ? plan_.max_message
                                         : log_between(random_, kNameBytes, plan_.max_message);
  wanted.capacity = std::max(wanted.capacity, kNameBytes);
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
  post_receive(wanted, false);
}

void Program::post_receive(const Wanted& wanted, bool must_match) {
  Operation& operation = take(wanted.capacity);
  operation.kind = Operation::Kind::kReceive;
  operation.wanted = wanted;
  operation.wanted.order = ++posts_;
  operation.must_match = must_match;
  const Status status =
      node_.engine().receive(node_.local_now(), wanted.source, wanted.tag, wanted.ignore,
                             {operation.buffer.get(), wanted.capacity}, operation.request);
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
  if (operation.kind != Operation::Kind::kReceive || operation.must_match) return;
  const bool taken_back = node_.engine().cancel(operation.request);
  note("cancel receive {}: {}", operation.wanted.order, taken_back);
  operation.cancelled = taken_back;
  if (taken_back != (operation.request.status() == Status::kCancelled)) {
    shared_.findings.report(fmt::format("cancel() said {}, the request {}", taken_back,
                                        name(operation.request.status())));
  }
}

// What probe() saw, a receive with the message's own tag must get.
void Program::probe() {
  const PeerId source = percent(random_, 50) ? kAnyPeer : draw_source();
  const bool any_tag = percent(random_, 60);
  const Tag label = random_.below(plan_.labels);
  const auto probe =
      node_.engine().probe(source, any_tag ? 0 : label, any_tag ? ~Tag{0} : ~kLabelBits);
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
    shared_.excuses.add(node_.host(), *host, Excuses::kGoodbye);
  } else {
    shared_.excuses.add_all(node_.host(), Excuses::kGoodbye);
  }
  node_.engine().disconnect(node_.local_now(), peer);
  forget(peer);
}

void Program::finish() {
  mode_ = Mode::kFinishing;
  node_.wake_at(node_.network_now());
}

void Program::keep_receiving() {
  if (stopped_) return;
  const auto is_wide = [](const auto& operation) {
    return operation->kind == Operation::Kind::kReceive && operation->wanted.source == kAnyPeer &&
           operation->wanted.ignore == ~Tag{0};
  };
  const auto wide =
      static_cast<std::size_t>(std::count_if(pending_.begin(), pending_.end(), is_wide));
  for (std::size_t i = wide; i < kFinishingReceives; ++i) {
    post_receive({.source = kAnyPeer,
                  .tag = 0,
                  .ignore = ~Tag{0},
                  .capacity = std::max<std::size_t>(plan_.max_message, kNameBytes)},
                 false);
  }
}

void Program::cancel_receives() {
  for (const auto& operation : pending_) {
    if (operation->kind != Operation::Kind::kReceive || operation->request.done()) continue;
    operation->cancelled = node_.engine().cancel(operation->request);
    if (operation->cancelled && operation->must_match &&
        !shared_.excuses.any(node_.host(),
                             shared_.ledger.host_of(node_.process(), operation->wanted.source))) {
      shared_.ledger.findings().report(
          fmt::format("host {}: a probed message with tag {:x} was never received", node_.host(),
                      operation->wanted.tag));
    }
  }
  stop();
  node_.touched();
}

void Program::reap() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    if (pending_[i]->request.done()) {
      finished(*pending_[i]);
      free_.push_back(std::move(pending_[i]));
    } else {
      if (kept != i) pending_[kept] = std::move(pending_[i]);
      ++kept;
    }
  }
  pending_.resize(kept);
}

// The bytes after the buffer must be as they were; the buffer is ours again, so nobody may mind
// what is written into it.
void Program::finished(Operation& operation) {
  const std::size_t size =
      operation.kind == Operation::Kind::kSend ? operation.size : operation.wanted.capacity;
  for (std::size_t i = 0; i < kGuardBytes; ++i) {
    if (operation.buffer[size + i] != kGuard) {
      shared_.findings.report(
          fmt::format("host {}: written beyond a buffer of {} bytes", node_.host(), size));
    }
  }
  if (operation.kind == Operation::Kind::kSend) {
    const Status status = operation.request.status();
    note("send of message {} of conversation {} done: {}", operation.name.index,
         operation.name.conversation, name(status));
    shared_.ledger.send_done(operation.name, status);
  } else {
    finished_receive(operation);
  }
  std::memset(operation.buffer.get(), static_cast<int>(kScribble), size);
}

void Program::finished_receive(Operation& operation) {
  const Request& request = operation.request;
  const Wanted& wanted = operation.wanted;
  note("receive {} done: {}, tag {:x}, {} of {} B", wanted.order, name(request.status()),
       request.tag(), request.length(), request.message_length());
  switch (request.status()) {
    case Status::kOk:
    case Status::kTruncated:
      shared_.ledger.received(
          node_.process(), wanted, request,
          {operation.buffer.get(), std::min(request.length(), wanted.capacity)});
      return;
    case Status::kCancelled:
      if (!operation.cancelled) shared_.findings.report("a receive was cancelled by nobody");
      return;
    case Status::kClosed:
      return;
    default:
      break;
  }
  const auto host = wanted.source == kAnyPeer
                        ? std::nullopt
                        : shared_.ledger.host_of(node_.process(), wanted.source);
  if (!shared_.excuses.allows(node_.host(), host, request.status())) {
    shared_.findings.report(
        fmt::format("host {}: a receive failed with {}", node_.host(), name(request.status())));
  }
}

void Program::ended() {
  reap();
  if (!pending_.empty()) {
    shared_.findings.report(fmt::format("host {}: {} requests are not done after abort()",
                                        node_.host(), pending_.size()));
  }
  known_.clear();
  posts_ = 0;
  stopped_ = false;
}

std::size_t Program::pending_sends() const {
  return static_cast<std::size_t>(std::count_if(
      pending_.begin(), pending_.end(),
      [](const auto& operation) { return operation->kind == Operation::Kind::kSend; }));
}

Program::Operation& Program::take(std::size_t capacity) {
  if (free_.empty()) {
    pending_.push_back(std::make_unique<Operation>());
  } else {
    pending_.push_back(std::move(free_.back()));
    free_.pop_back();
  }
  Operation& operation = *pending_.back();
  if (operation.allocated < capacity + kGuardBytes) {
    operation.allocated = capacity + kGuardBytes;
    operation.buffer.reset(new std::byte[operation.allocated]);
  }
  std::memset(operation.buffer.get() + capacity, static_cast<int>(kGuard), kGuardBytes);
  operation.cancelled = false;
  operation.must_match = false;
  return operation;
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
