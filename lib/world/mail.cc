#include "world/mail.h"

#include <fmt/format.h>

#include <utility>

#include "pullman/status.h"

namespace pullman::world {
namespace {

constexpr std::uint8_t kSpace = kSpaces - 1;
constexpr unsigned kKindShift = 32;
constexpr Tag kAnyNumber = 0xFFFFFFFF;

Tag tag_of(Kind kind, std::uint32_t number) {
  return static_cast<Tag>(kind) << kKindShift | number;
}

SendOptions in_our_space() {
  SendOptions options;
  options.space = kSpace;
  return options;
}

}  // namespace

// A request must not end while it is pending, which it may be if the context could not deliver.
Mail::~Mail() {
  for (Sent& sent : sent_) {
    if (!sent.request.done()) context_.close(std::chrono::nanoseconds(0));
  }
  for (MultiRequest& request : to_many_) {
    if (!request.done()) context_.close(std::chrono::nanoseconds(0));
  }
}

void Mail::check(PeerId peer, const std::string& whose) const {
  if (context_.peer_state(peer) != PeerState::kGone) return;
  const Status status = context_.peer_status(peer);
  throw Error(status, fmt::format("{} is gone: {}", whose, to_sentence(status)));
}

void Mail::forget_delivered() {
  sent_.remove_if([](const Sent& sent) { return sent.request.done(); });
  to_many_.remove_if([](const MultiRequest& request) { return request.done(); });
}

void Mail::send(PeerId to, Kind kind, std::uint32_t number, Bytes letter,
                const std::string& whose) {
  forget_delivered();
  check(to, whose);
  Sent& sent = sent_.emplace_back();
  sent.bytes = std::move(letter);
  context_.send(to, tag_of(kind, number), sent.bytes, in_our_space(), sent.request);
  context_.progress();
}

void Mail::send(std::span<const PeerId> to, Kind kind, std::uint32_t number, SharedBytes letter) {
  forget_delivered();
  if (to.empty()) return;
  context_.send(to, tag_of(kind, number), std::move(letter), in_our_space(),
                to_many_.emplace_back());
  context_.progress();
}

Bytes Mail::take(const Probe& probe) {
  Bytes bytes(probe.length);
  Request request;
  context_.receive_claimed(probe.claimed, bytes, request);
  const Status status = context_.wait(request);
  if (status != Status::kOk) throw Error(status, to_sentence(status));
  return bytes;
}

std::optional<Mail::Letter> Mail::next(Kind kind) {
  const auto probe = context_.claim(kAnyPeer, tag_of(kind, 0), kAnyNumber, kSpace);
  if (!probe) return std::nullopt;
  return Letter{probe->source, static_cast<std::uint32_t>(probe->tag), take(*probe)};
}

std::optional<Bytes> Mail::try_receive(PeerId from, Kind kind, std::uint32_t number,
                                       const std::string& whose) {
  if (const auto probe = context_.claim(from, tag_of(kind, number), 0, kSpace)) return take(*probe);
  check(from, whose);
  return std::nullopt;
}

Bytes Mail::receive(PeerId from, Kind kind, std::uint32_t number, const std::string& whose) {
  const Clock::time_point end = deadline();
  for (;;) {
    if (auto letter = try_receive(from, kind, number, whose)) return std::move(*letter);
    if (Clock::now() >= end) {
      throw Error(Status::kTimedOut, fmt::format("{} has not made the same call within {} s", whose,
                                                 std::chrono::duration<double>(patience_).count()));
    }
    pass_time();
  }
}

}  // namespace pullman::world
