// The state of a connectivity check of one peer's rails: our questions and our answers (wire.md
// 9.8). session/path_check.h and session/liveness.h do the work. A peer without a check has no such
// state.
#pragma once

#include <array>
#include <cstdint>

#include "base/time.h"
#include "engine/peer/rail.h"
#include "pullman/rails.h"
#include "wire/check.h"

namespace pullman::engine {

// The bits of a token that hold the slot of the peer that is asked; nobody can guess the others.
inline constexpr int kSlotBits = 20;

// The check in which we ask.
struct Asking {
  bool running = false;
  bool ended = false;  // a check has ended; its result stays until the next one ends
  std::uint8_t tries = 0;
  wire::CheckRound round;  // its token is 0 before the first round
  Duration limit{};
  Duration pause{};  // before the next try
  Instant end{};
  // By size, a bit for each rail: our questions that arrived, as the peer says, and the peer's
  // answers that came back.
  wire::RailsBySize there{};
  wire::RailsBySize back{};
  // A bit for each rail: something arrived by another NIC than the rail's, at the peer (there) or
  // at our end (here).
  wire::RailBits elsewhere_there = 0;
  wire::RailBits elsewhere_here = 0;
  wire::RailBits wrong = 0;                          // another engine has answered
  std::array<RailFinding, wire::kMaxRails> found{};  // the result of the last check that ended
  wire::RailBits outdated = 0;  // rails that have come back since their fault was found
  Instant found_at{};
  Timer timer;
};

// The check in which we answer the peer.
struct Answering {
  bool any = false;  // a question has come
  wire::CheckRound round;
  wire::RailsBySize arrived{};
  wire::RailBits elsewhere = 0;   // rails on which something came by another NIC of ours
  wire::RailBits large_owed = 0;  // rails that are owed a long answer, one for each long question
  std::uint8_t left = 0;          // answers that may still be given to this round
  bool due = false;
  Instant answered_at = Instant::min();
  Timer timer;
};

// Whether a silent peer is alive, and the same process (session/liveness.h).
struct LivenessProbe {
  bool asked = false;      // the round in Asking is our question on `rail`; no check is running
  std::uint8_t rail = 0;   // the rail that was asked last
  std::uint8_t tries = 0;  // probes on all rails since a host said that nobody listens there
  // Since `since`: rails on which another process answered, and on which nobody listens.
  wire::RailBits unknown = 0;
  wire::RailBits refused = 0;
  Instant since = Instant::min();  // the first sign of its end since it was last heard
  Instant due = Instant::min();    // silence causes no question before this
  Timer timer;
};

struct Checking {
  Asking asking;
  Answering answering;
  LivenessProbe probe;
};

}  // namespace pullman::engine
