// The faults for which operations between two hosts may fail in this run. A failure without such a
// reason is a bug.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "pullman/status.h"
#include "sim/wire.h"

namespace pullman::sim {

class AllowedFailures {
 public:
  enum Reason : std::uint8_t {
    kSilence = 1,     // they could not hear each other for so long that one may time out
    kRestart = 2,     // one of them died and came back
    kGoodbye = 4,     // one of them disconnected or closed
    kCrowded = 8,     // more peers than one of them allows
    kAttack = 16,     // an attacker on the path forges packets with the right proof
    kNoMeeting = 32,  // the NICs for calls were cut; once connected they have others
    kTwoNames = 64,   // one may have called from a NIC that is not its first
    kRefusal = 128,   // an operation between them was refused, and may have been
  };

  void add(std::uint8_t a, std::uint8_t b, Reason reason) {
    reasons_[a][b] |= reason;
    reasons_[b][a] |= reason;
  }
  void add_all(std::uint8_t host, Reason reason) {
    for (std::uint8_t other = 0; other < kMaxHosts; ++other) add(host, other, reason);
  }

  // Returns whether anything was done to `host` and `other`, or to any host `host` may have meant.
  bool any(std::uint8_t host, std::optional<std::uint8_t> other, bool met = false) const {
    return (reasons_of(host, other, met) & ~kTwoNames) != 0;
  }

  bool has_restarted(std::uint8_t a, std::uint8_t b) const {
    return (reasons_[a][b] & kRestart) != 0;
  }

  // Returns whether an operation of `host` with `other` (or a host not known yet) may end with that
  // status. `met`: they have been connected.
  bool allows(std::uint8_t host, std::optional<std::uint8_t> other, Status status,
              bool met = false) const {
    const std::uint8_t reasons = reasons_of(host, other, met);
    return (reasons & (reasons_for(status) | kAttack)) != 0;
  }

 private:
  std::uint8_t reasons_of(std::uint8_t host, std::optional<std::uint8_t> other, bool met) const {
    std::uint8_t reasons = 0;
    if (other) {
      reasons = reasons_[host][*other];
    } else {
      for (const std::uint8_t reason : reasons_[host]) reasons |= reason;
    }
    return met ? reasons & static_cast<std::uint8_t>(~kNoMeeting) : reasons;
  }

  static std::uint8_t reasons_for(Status status) {
    switch (status) {
      case Status::kUnreachable:
        return kSilence | kRestart | kGoodbye | kCrowded | kNoMeeting;
      case Status::kPeerDied:
        return kRestart;  // no other silence may count as death
      case Status::kPeerRestarted:
        return kRestart | kGoodbye | kSilence | kNoMeeting;
      case Status::kPeerClosed:
        // A full host may drop one of its callers, and then be connected by its own call.
        return kGoodbye | kRestart | kSilence | kCrowded | kNoMeeting;
      case Status::kUnknownPeer:
        return kGoodbye | kRestart | kSilence | kCrowded | kNoMeeting;
      case Status::kRefused:
        return kCrowded | kTwoNames;
      case Status::kTooManyPeers:
        return kCrowded | kGoodbye | kRestart;  // a peer that is closing keeps its place until gone
      case Status::kTimedOut:
        return kGoodbye;  // the other end takes nothing more of what was accepted
      case Status::kOk:
      case Status::kPending:
      case Status::kTruncated:
      case Status::kCancelled:
      case Status::kClosed:
      case Status::kInvalidArgument:
      case Status::kBusy:
      case Status::kBadOption:
      case Status::kNoDevice:
      case Status::kRefusedAccess:
      case Status::kNoMemory:
      case Status::kIncompatible:
        return 0;
    }
    return 0;
  }

  std::array<std::array<std::uint8_t, kMaxHosts>, kMaxHosts> reasons_{};
};

}  // namespace pullman::sim
