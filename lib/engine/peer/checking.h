// A connectivity check of one peer's rails: what is asked of it, and what it is answered
// (wire.md 9.8). State only; session/path_check.h and session/liveness.h do it. A peer that is not
// asked has none.
#pragma once

#include <array>
#include <cstdint>

#include "base/time.h"
#include "engine/peer/rail.h"
#include "pullman/rails.h"
#include "wire/check.h"

namespace pullman::engine {

// Of a token, for the slot of the peer that is asked; the others nobody can guess.
inline constexpr int kSlotBits = 20;

// Our questions.
struct Asking {
  bool running = false;
  bool ended = false;  // one has, so there is a result; it stays until the next one ends
  std::uint8_t tries = 0;
  wire::CheckRound round;  // without a token: none has been
  Duration limit{};
  Duration pause{};  // before the next try
  Instant end{};
  // A bit for each rail: what got there, says the peer, and what it sent that came back.
  wire::RailsBySize there{};
  wire::RailsBySize back{};
  // By another NIC than the rail's: what got there, says the peer, and what came back.
  wire::RailBits elsewhere_there = 0;
  wire::RailBits elsewhere_here = 0;
  wire::RailBits wrong = 0;                          // another engine has answered
  std::array<RailFinding, wire::kMaxRails> found{};  // by the last one that ended
  wire::RailBits outdated = 0;  // those faults are of before the rail came back
  Instant found_at{};
  Timer timer;
};

// Our answers to the peer's.
struct Answering {
  bool any = false;  // a question has come
  wire::CheckRound round;
  wire::RailsBySize arrived{};
  wire::RailBits elsewhere = 0;   // of that, what came by another NIC of ours
  wire::RailBits large_owed = 0;  // each long question has one long answer
  std::uint8_t left = 0;          // answers to this round
  bool due = false;
  Instant answered_at = Instant::min();
  Timer timer;
};

// Whether it is still there, and the same process (session/liveness.h).
struct LivenessProbe {
  bool asked = false;      // Asking's round, which is not running, is our question of this rail
  std::uint8_t rail = 0;   // the last that was asked so
  std::uint8_t tries = 0;  // questions to all rails since a host said that nobody listens there
  // Since then: on those another process answers, and nobody listens.
  wire::RailBits denied = 0;
  wire::RailBits refused = 0;
  Instant since = Instant::min();  // the first sign of it since the peer was heard
  Instant due = Instant::min();    // for its silence it is not asked before that
  Timer timer;
};

struct Checking {
  Asking asking;
  Answering answering;
  LivenessProbe probe;
};

}  // namespace pullman::engine
