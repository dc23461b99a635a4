#include "world/mail.h"

#include <fmt/format.h>

#include <utility>

#include "base/log.h"
#include "pullman/status.h"
#include "pullman/world.h"

namespace pullman::world {
namespace {

// What anybody may send unasked is short, and does not keep a call waiting for long.
constexpr std::chrono::seconds kUnasked(10);

SendOptions in_our_space() {
  SendOptions options;
  options.space = kOwnSpace;
  return options;
}

std::size_t longest(Kind kind) {
  switch (kind) {
    case Kind::kIntroduction:
      return 4;
    case Kind::kArrival:
      return 1024;
    case Kind::kRefusal:
      return 4096;
    case Kind::kReport:
      return std::size_t{1} << 24;
    case Kind::kQuestion:
    case Kind::kAnswer:
      return 0;
    case Kind::kDirectory:
    case Kind::kUp:
    case Kind::kDown:
      break;
  }
  return World::kMaxBroadcastBytes;
}

}  // namespace

Mail::~Mail() {
  context_.close();
}

void Mail::check(PeerId peer, const std::string& whose) const {
  if (!has_ended(peer)) return;
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
  const Status status =
      context_.send(to, tag_of(kind, number), sent.bytes, in_our_space(), sent.request);
  if (status != Status::kOk && status != Status::kPending) {
    throw Error(status, fmt::format("{} cannot be told: {}", whose, to_sentence(status)));
  }
  context_.progress();
}

// A peer that has ended is found out by who waits for it.
void Mail::send(std::span<const PeerId> to, Kind kind, std::uint32_t number, SharedBytes letter) {
  forget_delivered();
  if (to.empty()) return;
  context_.send(to, tag_of(kind, number), std::move(letter), in_our_space(),
                to_many_.emplace_back());
  context_.progress();
}

std::optional<Bytes> Mail::take(Kind kind, const Probe& probe, const std::string& whose) {
  if (probe.length > longest(kind)) {
    context_.discard(probe.claimed);
    return std::nullopt;
  }
  Bytes bytes(probe.length);
  Request request;
  context_.receive_claimed(probe.claimed, bytes, request);
  const bool unasked = kind == Kind::kIntroduction || kind == Kind::kArrival;
  Status status = context_.wait(
      request, unasked ? std::min<std::chrono::nanoseconds>(patience_, kUnasked) : patience_);
  if (!request.done()) {
    context_.abandon(probe.source);  // ends the request
    status = context_.wait(request);
  }
  if (status == Status::kOk) return bytes;
  throw Error(status,
              fmt::format("{} has not sent all of a letter: {}", whose, to_sentence(status)));
}

// A letter that somebody has not finished is none.
std::optional<Mail::Letter> Mail::next(Kind kind) {
  while (const auto probe = context_.claim(kAnyPeer, tag_of(kind, 0), kAnyNumber, kOwnSpace)) {
    try {
      if (auto bytes = take(kind, *probe, "somebody")) {
        return Letter{probe->source, static_cast<std::uint32_t>(probe->tag), std::move(*bytes)};
      }
    } catch (const Error& error) {
      log().info("{}", error.what());
    }
  }
  return std::nullopt;
}

std::optional<Bytes> Mail::find(PeerId from, Kind kind, std::uint32_t number,
                                const std::string& whose) {
  while (const auto probe = context_.claim(from, tag_of(kind, number), 0, kOwnSpace)) {
    if (auto bytes = take(kind, *probe, whose)) return bytes;
  }
  return std::nullopt;
}

std::optional<Bytes> Mail::try_receive(PeerId from, Kind kind, std::uint32_t number,
                                       const std::string& whose) {
  auto letter = find(from, kind, number, whose);
  if (!letter) check(from, whose);
  return letter;
}

}  // namespace pullman::world
