#include "world/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "pullman/status.h"
#include "wire/bytes.h"
#include "world/names.h"
#include "world/tree.h"

namespace pullman::world {
namespace {

// In a letter: the rank, the length of its card, the card.
constexpr std::size_t kEntryFixed = 8;

void append_entry(Bytes& letter, unsigned rank, std::span<const std::byte> card) {
  const std::size_t at = letter.size();
  letter.resize(at + kEntryFixed);
  wire::store32(letter.data() + at, rank);
  wire::store32(letter.data() + at + 4, static_cast<std::uint32_t>(card.size()));
  letter.insert(letter.end(), card.begin(), card.end());
}

// Throws Error unless the letter has one card of each process.
std::vector<Bytes> cards_in(std::span<const std::byte> letter, unsigned size) {
  std::vector<std::optional<Bytes>> found(size);
  const auto fail = [] {
    throw Error(Status::kIncompatible, "the processes of the job make different calls");
  };
  while (!letter.empty()) {
    if (letter.size() < kEntryFixed) fail();
    const std::uint32_t rank = wire::load32(letter.data());
    const std::uint32_t length = wire::load32(letter.data() + 4);
    letter = letter.subspan(kEntryFixed);
    if (rank >= size || found[rank] || length > letter.size()) fail();
    found[rank].emplace(letter.begin(), letter.begin() + length);
    letter = letter.subspan(length);
  }
  std::vector<Bytes> cards;
  for (std::optional<Bytes>& card : found) {
    if (!card) fail();
    cards.push_back(std::move(*card));
  }
  return cards;
}

}  // namespace

class Collectives::Call {
 public:
  Call(Collectives& all, const char* name)
      : all_(all), number_(all.calls_++), noted_(all.current_, name) {
    if (all_.failed_) {
      throw Error(Status::kInvalidArgument,
                  "an earlier call that all processes of the job made has failed");
    }
    all_.failed_ = true;
  }
  void finish() { all_.failed_ = false; }
  std::uint32_t number() const { return number_; }

 private:
  Collectives& all_;
  const std::uint32_t number_;
  const CurrentCall::Noted noted_;
};

void Collectives::send(unsigned to, Kind kind, std::uint32_t call, Bytes letter) {
  mail_.send(roster_.peer(to), kind, call, std::move(letter), name_of(to));
}

// The sender connects. What it has sent is received although it has left since; if it has only
// ended its connection it may call again, which takes no time.
Bytes Collectives::receive(unsigned from, Kind kind, std::uint32_t call) {
  constexpr std::chrono::milliseconds kGrace(500);
  const CurrentCall::Waiting waiting(current_, from);
  const auto end = mail_.deadline();
  auto gone_since = Mail::Clock::time_point::max();
  for (;;) {
    const auto now = Mail::Clock::now();
    if (const auto peer = roster_.known(from)) {
      if (auto letter = mail_.find(*peer, kind, call, name_of(from))) return std::move(*letter);
      gone_since =
          mail_.has_ended(*peer) ? std::min(gone_since, now) : Mail::Clock::time_point::max();
      if (gone_since < now - kGrace) mail_.check(*peer, name_of(from));
    }
    if (now >= end) {
      throw Error(Status::kTimedOut, fmt::format("{} has not made the same call within {} s",
                                                 name_of(from), mail_.seconds()));
    }
    mail_.pass_time();
  }
}

SharedBytes Collectives::pass_down(std::uint32_t call, unsigned root, SharedBytes message) {
  const Tree tree(size_, root);
  if (!tree.is_root(rank_)) {
    const unsigned parent = tree.parent(rank_);
    message = std::make_shared<const Bytes>(receive(parent, Kind::kDown, call));
  }
  std::vector<PeerId> children;
  for (const unsigned child : tree.children(rank_)) children.push_back(roster_.peer(child));
  mail_.send(children, Kind::kDown, call, message);
  return message;
}

void Collectives::barrier() {
  constexpr unsigned kRoot = 0;
  Call call(*this, "barrier");
  const Tree tree(size_, kRoot);
  for (const unsigned child : tree.children(rank_)) {
    receive(child, Kind::kUp, call.number());
  }
  if (!tree.is_root(rank_)) {
    const unsigned parent = tree.parent(rank_);
    send(parent, Kind::kUp, call.number(), {});
  }
  pass_down(call.number(), kRoot, std::make_shared<const Bytes>());
  call.finish();
}

std::vector<Bytes> Collectives::allgather(std::span<const std::byte> card) {
  constexpr unsigned kRoot = 0;
  Call call(*this, "allgather");
  const Tree tree(size_, kRoot);
  Bytes letter;
  append_entry(letter, rank_, card);
  for (const unsigned child : tree.children(rank_)) {
    const Bytes part = receive(child, Kind::kUp, call.number());
    letter.insert(letter.end(), part.begin(), part.end());
  }
  SharedBytes all;
  if (tree.is_root(rank_)) {
    all = std::make_shared<const Bytes>(std::move(letter));
  } else {
    const unsigned parent = tree.parent(rank_);
    send(parent, Kind::kUp, call.number(), std::move(letter));
  }
  auto cards = cards_in(*pass_down(call.number(), kRoot, std::move(all)), size_);
  call.finish();
  return cards;
}

SharedBytes Collectives::broadcast(unsigned root, SharedBytes message) {
  Call call(*this, "broadcast");
  if (rank_ == root && message == nullptr) message = std::make_shared<const Bytes>();
  message = pass_down(call.number(), root, std::move(message));
  call.finish();
  return message;
}

}  // namespace pullman::world
