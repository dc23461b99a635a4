// Letters: small messages between the processes of a world, in the world's own space.
//
// A letter has a kind and a number, and is taken by both. Waiting for one ends with an Error if its
// sender ends, or does not send it within the patience. What is longer than a letter of its kind
// can be is discarded. Context is the only thing that this knows.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "pullman/context.h"
#include "world/bytes.h"

namespace pullman::world {

// The world's own space, and how letters are tagged there.
inline constexpr std::uint8_t kOwnSpace = kSpaces - 1;
inline constexpr unsigned kKindShift = 32;
inline constexpr Tag kAnyNumber = 0xFFFFFFFF;

enum class Kind : std::uint8_t {
  kIntroduction,  // the rank of a process that has connected
  kArrival,       // the same to rank 0, with its card
  kDirectory,     // the cards of all, from rank 0
  kRefusal,       // instead of that: a sentence that says why there is none
  kUp,            // from a child to its parent
  kDown,          // from a parent to its children
  kQuestion,      // how a process does (side_channel.h)
  kAnswer,        // to that; both are received elsewhere
  kReport,        // counters at the end (report.h)
};

inline Tag tag_of(Kind kind, std::uint32_t number) {
  return static_cast<Tag>(kind) << kKindShift | number;
}

class Mail {
 public:
  Mail(Context& context, std::chrono::nanoseconds patience)
      : context_(context), patience_(std::clamp(patience, kShortest, kLongest)) {}
  Mail(const Mail&) = delete;
  Mail& operator=(const Mail&) = delete;
  // Closes the context, which delivers what has been sent.
  ~Mail();

  using Clock = std::chrono::steady_clock;
  Clock::time_point deadline() const { return Clock::now() + patience_; }
  std::chrono::nanoseconds patience() const { return patience_; }
  double seconds() const { return std::chrono::duration<double>(patience_).count(); }
  const Context& context() const { return context_; }

  // Sends a letter, which leaves at once, since the program may do something else next for long.
  // Does not wait until it has arrived. Throws Error if the peer has ended; `whose` names it.
  void send(PeerId to, Kind kind, std::uint32_t number, Bytes letter, const std::string& whose);
  // Sends one to each of those peers.
  void send(std::span<const PeerId> to, Kind kind, std::uint32_t number, SharedBytes letter);

  struct Letter {
    PeerId from;
    std::uint32_t number = 0;
    Bytes bytes;
  };
  // Returns the next letter of that kind, from any peer, if one has come.
  std::optional<Letter> next(Kind kind);
  // Returns the letter of that peer if it has come.
  std::optional<Bytes> find(PeerId from, Kind kind, std::uint32_t number, const std::string& whose);
  // The same. Throws Error if it has not come and the peer has ended.
  std::optional<Bytes> try_receive(PeerId from, Kind kind, std::uint32_t number,
                                   const std::string& whose);
  // Has packets moved for a moment.
  void pass_time() { context_.wait_for_arrival(std::chrono::milliseconds(2)); }

  bool has_ended(PeerId peer) const { return context_.peer_state(peer) == PeerState::kGone; }
  // Throws Error if the peer has ended.
  void check(PeerId peer, const std::string& whose) const;

 private:
  static constexpr std::chrono::nanoseconds kShortest = std::chrono::milliseconds(1);
  static constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(24);

  struct Sent {
    Bytes bytes;
    Request request;
  };

  // Returns nothing if the letter is too long.
  std::optional<Bytes> take(Kind kind, const Probe& probe, const std::string& whose);
  void forget_delivered();

  Context& context_;
  const std::chrono::nanoseconds patience_;
  std::list<Sent> sent_;             // perhaps not delivered yet
  std::list<MultiRequest> to_many_;  // likewise
};

}  // namespace pullman::world
