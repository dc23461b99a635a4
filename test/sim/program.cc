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
constexpr std::ptrdiff_t kFinishingReceives = 4;

}  // namespace

Program::Program(Shared& shared, Node& node, const ProgramPlan& plan, std::uint64_t bad_heads,
                 std::uint64_t seed)
    : shared_(shared),
      node_(node),
      plan_(plan),
      random_(seed),
      operations_left_(plan.operations),
      next_operation_(node.network_now()),
      work_({shared.ledger, shared.excuses, shared.ledger.findings(), shared.homes}, node,
            seed ^ 0xACCE55),
      bad_heads_(node, bad_heads, seed ^ 0xBADEAD) {
  booted();
}

void Program::run() {
  accept();
  note_meetings();
  reap();
  work_.run();
  bad_heads_.reap();
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
    if (!is_known) known_.push_back({.id = *id, .host = {}, .met = false});
  }
}

void Program::note_meetings() {
  for (Known& known : known_) {
    // A peer that proved to be known by another handle is refused, and what it was sent is lost.
    if (known.host && node_.engine().inspector().peer_status(known.id) == Status::kRefused) {
      shared_.excuses.add(node_.host(), *known.host, AllowedFailures::kRefusal);
    }
    if (known.met || !has_met(known.id)) continue;
    known.met = true;
    shared_.ledger.met(node_.process(), known.id);
  }
}

// A link may be cut as soon as one end is connected: both are if the relay has been another way.
bool Program::has_met(PeerId peer) const {
  const engine::Inspector& inspector = node_.engine().inspector();
  if (inspector.peer_state(peer) != PeerState::kConnected) return false;
  if (!shared_.may_be_relayed) return true;
  const auto rails = inspector.rails(node_.local_now(), peer);
  return std::any_of(rails.begin(), rails.end(), [](const RailView& rail) {
    return rail.nic == "relay" && rail.state == RailState::kUp;
  });
}

std::vector<PeerId> Program::handles() const {
  std::vector<PeerId> ids;
  for (const Known& known : known_) ids.push_back(known.id);
  return ids;
}

void Program::finish() {
  mode_ = Mode::kFinishing;
  node_.wake_at(node_.network_now());
}

void Program::receive_again() {
  stopped_ = false;
  finish();
}

// Keeps some wildcard receives posted; messages that have come already are taken at once.
void Program::keep_receiving() {
  const std::size_t spaces = plan_.options_percent == 0 ? 1 : kDrawnSpaces.size();
  for (const std::uint8_t space : std::span(kDrawnSpaces).first(spaces)) {
    const auto is_wide = [space](const auto& operation) {
      return operation->kind == Operation::Kind::kReceive && operation->wanted.source == kAnyPeer &&
             operation->wanted.ignore == ~Tag{0} && operation->wanted.space == space &&
             operation->many == nullptr;
    };
    while (std::count_if(pending_.begin(), pending_.end(), is_wide) < kFinishingReceives &&
           !shared_.findings.any()) {
      post_receive({.source = kAnyPeer,
                    .tag = 0,
                    .ignore = ~Tag{0},
                    .capacity = std::max<std::size_t>(plan_.max_message, kNameBytes),
                    .space = space},
                   false);
    }
  }
}

void Program::cancel_receives() {
  for (const auto& operation : pending_) {
    if (operation->kind != Operation::Kind::kReceive || operation->posted().done()) continue;
    operation->cancelled = node_.engine().matching().cancel(operation->posted());
    if (operation->cancelled && operation->must_match &&
        !shared_.excuses.any(node_.host(),
                             shared_.ledger.host_of(node_.process(), operation->wanted.source))) {
      shared_.ledger.findings().report(
          fmt::format("host {}: a probed message with tag {:x} was never received", node_.host(),
                      operation->wanted.tag));
    }
  }
  stop();
  reap();
  node_.touched();
}

void Program::reap() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    if (pending_[i]->many != nullptr) take_messages(*pending_[i]);
    if (pending_[i]->done()) {
      finished(*pending_[i]);
      free_.push_back(std::move(pending_[i]));
    } else {
      if (kept != i) pending_[kept] = std::move(pending_[i]);
      ++kept;
    }
  }
  pending_.resize(kept);
}

// Checks that the bytes behind the buffer are unchanged, and scribbles over it: a sent buffer is
// the program's again, and a received message may not show in the next one.
void Program::finished(Operation& operation) {
  const std::size_t size =
      operation.kind == Operation::Kind::kSend ? operation.size : operation.wanted.capacity;
  for (std::size_t i = 0; i < kGuardBytes; ++i) {
    if (operation.buffer[size + i] != kGuard) {
      shared_.findings.report(
          fmt::format("host {}: written beyond a buffer of {} bytes", node_.host(), size));
    }
  }
  std::size_t used = size;
  if (operation.kind == Operation::Kind::kSend) {
    const Status status = operation.request.status();
    note("send of message {} of conversation {} done: {}", operation.name.index,
         operation.name.conversation, name(status));
    shared_.ledger.send_done(operation.name, status);
  } else {
    finished_receive(operation);
    // Most receives are much larger than their message, or get none.
    if (operation.many == nullptr) used = std::min(size, operation.request.length());
  }
  std::memset(operation.buffer.get(), static_cast<int>(kScribble), used);
}

// Takes the messages of a shared receive one by one, each with its part of the buffer.
void Program::take_messages(Operation& operation) {
  while (const auto message = operation.many->take()) {
    Wanted wanted = operation.wanted;
    wanted.place = static_cast<std::size_t>(message->bytes.data() - operation.buffer.get());
    wanted.capacity -= std::min(wanted.capacity, wanted.place);
    note("receive {} has, at {}: {}, tag {:x}, {} of {} B", wanted.order, wanted.place,
         name(message->status), message->tag, message->bytes.size(), message->length);
    if (message->status != Status::kOk && message->status != Status::kTruncated) {
      operation.part_failed = true;
      continue;
    }
    operation.parts.emplace_back(wanted.place, message->bytes.size());
    shared_.ledger.received(node_.process(), wanted,
                            {.status = message->status,
                             .source = message->source,
                             .tag = message->tag,
                             .message_length = message->length,
                             .immediate = message->immediate},
                            message->bytes);
  }
}

void Program::finished_receive(Operation& operation) {
  if (operation.many != nullptr) {
    const Status status = operation.many->status();
    note("receive {} of many done: {}", operation.wanted.order, name(status));
    check_parts(operation);
    if (status == Status::kOk || status == Status::kClosed) return;
    return check_failure(operation);
  }
  const Request& request = operation.request;
  const Wanted& wanted = operation.wanted;
  note("receive {} done: {}, tag {:x}, {} of {} B", wanted.order, name(request.status()),
       request.tag(), request.length(), request.message_length());
  switch (request.status()) {
    case Status::kOk:
    case Status::kTruncated:
      shared_.ledger.received(
          node_.process(), wanted,
          {.status = request.status(),
           .source = request.source(),
           .tag = request.tag(),
           .message_length = request.message_length(),
           .immediate = request.immediate()},
          {operation.buffer.get(), std::min(request.length(), wanted.capacity)});
      return;
    case Status::kClosed:
      return;
    default:
      return check_failure(operation);
  }
}

// Messages lie one behind the other; one that failed may leave a gap.
void Program::check_parts(Operation& operation) {
  std::sort(operation.parts.begin(), operation.parts.end());
  std::size_t end = 0;
  for (const auto& [place, length] : operation.parts) {
    if (place < end || (place > end && !operation.part_failed)) {
      shared_.findings.report(fmt::format("host {}: a message lies at {} of a buffer, not at {}",
                                          node_.host(), place, end));
    }
    end = place + length;
  }
}

void Program::check_failure(Operation& operation) {
  const Wanted& wanted = operation.wanted;
  const Status status = operation.posted().status();
  if (status == Status::kCancelled) {
    if (!operation.cancelled) shared_.findings.report("a receive was cancelled by nobody");
    return;
  }
  // The memory bound is for the program itself to clear; the messages come later.
  if (status == Status::kNoMemory) return;
  const auto host = wanted.source == kAnyPeer
                        ? std::nullopt
                        : shared_.ledger.host_of(node_.process(), wanted.source);
  const bool met =
      wanted.source != kAnyPeer && shared_.ledger.have_met(node_.process(), wanted.source);
  if (!shared_.excuses.allows(node_.host(), host, status, met)) {
    shared_.findings.report(
        fmt::format("host {}: a receive failed with {}", node_.host(), name(status)));
  }
}

void Program::ended() {
  reap();
  work_.ended();
  bad_heads_.reap();
  if (const std::size_t left = pending_.size() + bad_heads_.pending(); left != 0) {
    shared_.findings.report(
        fmt::format("host {}: {} requests are not done after abort()", node_.host(), left));
  }
  known_.clear();
  posts_ = 0;
  stopped_ = false;
}

std::size_t Program::pending_sends() const {
  return static_cast<std::size_t>(std::count_if(
             pending_.begin(), pending_.end(),
             [](const auto& operation) { return operation->kind == Operation::Kind::kSend; })) +
         work_.pending();
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
  operation.many.reset();
  operation.parts.clear();
  operation.part_failed = false;
  return operation;
}

}  // namespace pullman::sim
