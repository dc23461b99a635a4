// Why operations between two hosts may fail in this run: what was done to them. A failure without
// an excuse is a bug.
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
    kSilence = 1,     // they could not hear each other for so long that one may give up
    kRestart = 2,     // one of them died and came back
    kGoodbye = 4,     // one of them disconnected or closed
    kCrowded = 8,     // more peers than one of them allows
    kAttack = 16,     // somebody on the path forges packets with the right proof
    kNoMeeting = 32,  // the NICs by which they call each other were cut; once met they have others
    kTwoNames = 64,   // one of them may have had to call by another NIC than his first
    kRefusal = 128,   // an operation of one with the other was refused, and might be
  };

  void add(std::uint8_t a, std::uint8_t b, Reason reason) {
    reasons_[a][b] |= reason;
    reasons_[b][a] |= reason;
  }
  void add_all(std::uint8_t host, Reason reason) {
    for (std::uint8_t other = 0; other < kMaxHosts; ++other) add(host, other, reason);
  }

  // Whether anything at all was done to `host` and `other` (or to anybody `host` may have meant).
  bool any(std::uint8_t host, std::optional<std::uint8_t> other, bool met = false) const {
    return (reasons_of(host, other, met) & ~kTwoNames) != 0;
  }

  bool has_restarted(std::uint8_t a, std::uint8_t b) const {
    return (reasons_[a][b] & kRestart) != 0;
  }

  // Whether an operation of `host` with `other` (or one it does not know yet) may end so. `met`:
  // they had been connected.
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
        return kRestart;  // no other silence may be taken for that
      case Status::kPeerRestarted:
        return kRestart | kGoodbye | kSilence | kNoMeeting;
      case Status::kPeerClosed:
        // Of a full host's callers one may be dropped, and then be called by it.
        return kGoodbye | kRestart | kSilence | kCrowded | kNoMeeting;
      case Status::kUnknownPeer:
        return kGoodbye | kRestart | kSilence | kCrowded | kNoMeeting;
      case Status::kRefused:
        return kCrowded | kTwoNames;
      case Status::kTooManyPeers:
        return kCrowded | kGoodbye | kRestart;  // who is leaving has a place until gone
      case Status::kTimedOut:
        return kGoodbye;  // the other takes nothing more of what was accepted
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
        return 0;
    }
    return 0;
  }

  std::array<std::array<std::uint8_t, kMaxHosts>, kMaxHosts> reasons_{};
};

}  // namespace pullman::sim
