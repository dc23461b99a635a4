#include "world/rendezvous.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "pullman/status.h"
#include "wire/bytes.h"
#include "world/names.h"

namespace pullman::world {
namespace {

// The time that a word of rank 0 may take.
constexpr std::chrono::seconds kGrace(2);

// An arrival: rank, size, card.
constexpr std::size_t kArrivalFixed = 8;

Bytes arrival(Place place, std::span<const std::byte> card) {
  Bytes letter(kArrivalFixed + card.size());
  wire::store32(letter.data(), place.rank);
  wire::store32(letter.data() + 4, place.size);
  std::copy(card.begin(), card.end(), letter.begin() + kArrivalFixed);
  return letter;
}

// A refusal: the status, the sentence.
SharedBytes refusal(Status status, const std::string& sentence) {
  Bytes letter(1 + sentence.size());
  letter[0] = static_cast<std::byte>(status);
  std::copy(sentence.begin(), sentence.end(), reinterpret_cast<char*>(letter.data() + 1));
  return std::make_shared<const Bytes>(std::move(letter));
}

[[noreturn]] void throw_refusal(const Bytes& letter) {
  if (letter.empty()) throw Error(Status::kIncompatible, "rank 0 refuses this process");
  const auto* const sentence = reinterpret_cast<const char*>(letter.data() + 1);
  const auto status =
      std::to_integer<std::uint8_t>(letter[0]) == static_cast<unsigned>(Status::kTimedOut)
          ? Status::kTimedOut
          : Status::kInvalidArgument;
  throw Error(status, std::string(sentence, letter.size() - 1));
}

bool is_card(std::span<const std::byte> bytes) {
  try {
    take_card(bytes);
  } catch (const Error&) {
    return false;
  }
  return bytes.empty();
}

// Those that have come to rank 0.
class Arrivals {
 public:
  Arrivals(unsigned size, std::span<const std::byte> card) : cards_(size), peers_(size) {
    cards_[0].emplace(card.begin(), card.end());
  }

  // Returns why this one does not fit, or nothing.
  std::string add(const Mail::Letter& letter, const Context& context) {
    const std::span<const std::byte> bytes(letter.bytes);
    if (bytes.size() < kArrivalFixed || !is_card(bytes.subspan(kArrivalFixed))) {
      return "a process of another version has come: all need the same";
    }
    const std::uint32_t rank = wire::load32(bytes.data());
    const std::uint32_t size = wire::load32(bytes.data() + 4);
    if (size != cards_.size()) {
      return fmt::format("{} says that there are {} processes, rank 0 that there are {}",
                         name_of(rank), size, cards_.size());
    }
    if (rank == 0 || rank >= size) return fmt::format("{} of {} has come", name_of(rank), size);
    // One that had no answer in time calls again.
    const bool is_there = cards_[rank] && context.peer_state(peers_[rank]) != PeerState::kGone;
    if (is_there && peers_[rank] != letter.from) {
      return fmt::format("two processes say that they are {}", name_of(rank));
    }
    missing_ -= cards_[rank] ? 0 : 1;
    cards_[rank].emplace(bytes.begin() + kArrivalFixed, bytes.end());
    peers_[rank] = letter.from;
    return {};
  }

  bool complete() const { return missing_ == 0; }
  // Says who has not come.
  std::string missing() const {
    std::vector<unsigned> ranks;
    for (unsigned rank = 0; rank < cards_.size(); ++rank) {
      if (!cards_[rank]) ranks.push_back(rank);
    }
    return fmt::format("{} of {} {} not come", names_of(ranks), cards_.size(),
                       ranks.size() == 1 ? "has" : "have");
  }
  std::vector<PeerId> here() const {
    std::vector<PeerId> here;
    for (unsigned rank = 1; rank < cards_.size(); ++rank) {
      if (cards_[rank]) here.push_back(peers_[rank]);
    }
    return here;
  }
  // The cards of all, one behind the other.
  Bytes directory() const {
    Bytes all;
    for (const auto& card : cards_) all.insert(all.end(), card->begin(), card->end());
    return all;
  }
  std::vector<PeerId> take_peers() { return std::move(peers_); }

 private:
  std::vector<std::optional<Bytes>> cards_;
  std::vector<PeerId> peers_;
  std::size_t missing_ = cards_.size() - 1;
};

std::vector<Addresses> addresses_in(std::span<const std::byte> directory, unsigned size) {
  std::vector<Addresses> cards;
  while (cards.size() < size) cards.push_back(take_card(directory));
  return cards;
}

}  // namespace

// A process that does not fit is told so, and the others are still waited for.
Met meet_as_first(Mail& mail, Place place, std::span<const std::byte> card) {
  Arrivals arrivals(place.size, card);
  std::string misfit;
  const auto end = mail.deadline();
  while (!arrivals.complete() && Mail::Clock::now() < end) {
    const auto letter = mail.next(Kind::kArrival);
    if (!letter) {
      mail.pass_time();
      continue;
    }
    std::string problem = arrivals.add(*letter, mail.context());
    if (problem.empty()) continue;
    mail.send(std::span(&letter->from, 1), Kind::kRefusal, 0,
              refusal(Status::kInvalidArgument, problem));
    misfit = std::move(problem);
  }
  if (!arrivals.complete()) {
    const std::string problem = fmt::format("{} within {} s{}{}", arrivals.missing(),
                                            mail.seconds(), misfit.empty() ? "" : "; ", misfit);
    mail.send(arrivals.here(), Kind::kRefusal, 0, refusal(Status::kTimedOut, problem));
    throw Error(Status::kTimedOut, problem);
  }
  const auto directory = std::make_shared<const Bytes>(arrivals.directory());
  mail.send(arrivals.here(), Kind::kDirectory, 0, directory);
  return {addresses_in(*directory, place.size), arrivals.take_peers()};
}

Met meet_at_first(Mail& mail, Place place, std::span<const std::byte> card,
                  const std::function<PeerId()>& connect,
                  const std::function<void(PeerId)>& forget) {
  const std::string first = name_of(0);
  auto end = mail.deadline();
  bool answered = false;
  while (Mail::Clock::now() < end) {
    const PeerId there = connect();
    try {
      mail.send(there, Kind::kArrival, 0, arrival(place, card), first);
      while (Mail::Clock::now() < end) {
        if (const auto letter = mail.try_receive(there, Kind::kRefusal, 0, first)) {
          throw_refusal(*letter);
        }
        if (const auto all = mail.try_receive(there, Kind::kDirectory, 0, first)) {
          Met met{addresses_in(*all, place.size), std::vector<PeerId>(place.size)};
          met.peers[0] = there;
          return met;
        }
        // It waits for others as long as we for it, and then says whom it has missed.
        if (!answered && mail.context().peer_state(there) == PeerState::kConnected) {
          answered = true;
          end = mail.deadline() + kGrace;
        }
        mail.pass_time();
      }
      forget(there);  // or the end of the context would wait for it, too
    } catch (const Error& error) {
      // It may not have started yet.
      const bool may_come = error.status() == Status::kUnreachable ||
                            error.status() == Status::kPeerDied ||
                            error.status() == Status::kPeerRestarted;
      if (!may_come) throw;
      forget(there);
    }
  }
  throw Error(Status::kTimedOut,
              fmt::format("{} has not answered within {} s, or others have not come to it", first,
                          mail.seconds()));
}

}  // namespace pullman::world
