// What the states of rails are called.
#include "pullman/rails.h"

namespace pullman {

const char* name(RailState state) {
  switch (state) {
    case RailState::kUp:
      return "up";
    case RailState::kSuspect:
      return "suspect";
    case RailState::kDown:
      return "down";
    case RailState::kProbing:
      return "probing";
    case RailState::kDrained:
      return "drained";
  }
  return "?";
}

const char* name(RailReason reason) {
  switch (reason) {
    case RailReason::kNew:
      return "not asked yet";
    case RailReason::kAnswers:
      return "it answers";
    case RailReason::kSilent:
      return "silent while another rail answered";
    case RailReason::kLinkDown:
      return "the NIC has no link";
    case RailReason::kTold:
      return "the other end has left it";
    case RailReason::kLossy:
      return "loses too many packets";
    case RailReason::kFlapping:
      return "went down too often lately";
    case RailReason::kFailed:
      return "the NIC is beyond use";
    case RailReason::kOperator:
      return "drained by hand";
    case RailReason::kResolve:
      return "the other end's address cannot be reached from here";
  }
  return "?";
}

}  // namespace pullman
