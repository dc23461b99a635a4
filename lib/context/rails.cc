// The names of the states of rails, and sentences about them.
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
      return "not probed yet";
    case RailReason::kAnswers:
      return "it answers";
    case RailReason::kSilent:
      return "silent while another rail answered";
    case RailReason::kLinkDown:
      return "the NIC has no link";
    case RailReason::kAddressGone:
      return "the address is gone";
    case RailReason::kTold:
      return "the other end has left it";
    case RailReason::kLossy:
      return "loses too many packets";
    case RailReason::kFlapping:
      return "went down too often lately";
    case RailReason::kFailed:
      return "the NIC has failed";
    case RailReason::kOperator:
      return "drained by hand";
    case RailReason::kSilentThere:
      return "silent at the other end";
    case RailReason::kResolve:
      return "the other end's address cannot be reached from here";
  }
  return "?";
}

const char* name(RailFinding finding) {
  switch (finding) {
    case RailFinding::kNotChecked:
      return "not checked";
    case RailFinding::kFine:
      return "fine";
    case RailFinding::kUnreachable:
      return "unreachable";
    case RailFinding::kOneWayThere:
      return "one way there";
    case RailFinding::kOneWayBack:
      return "one way back";
    case RailFinding::kLargeLost:
      return "large lost";
    case RailFinding::kWrongHost:
      return "wrong host";
    case RailFinding::kOtherNicThere:
      return "other NIC there";
    case RailFinding::kOtherNicHere:
      return "other NIC here";
  }
  return "?";
}

const char* to_sentence(RailFinding finding) {
  switch (finding) {
    case RailFinding::kNotChecked:
      return "it has not been checked";
    case RailFinding::kFine:
      return "packets of all sizes pass both ways";
    case RailFinding::kUnreachable:
      return "nothing passes, neither way: look at cables, switch ports, routes and filters";
    case RailFinding::kOneWayThere:
      return "packets get there and none comes back: look at the peer's routes and our filters";
    case RailFinding::kOneWayBack:
      return "packets come from there and none gets there: look at our routes and the peer's "
             "filters";
    case RailFinding::kLargeLost:
      return "small packets pass and long ones do not: the MTU on the way is less than at the "
             "ends, "
             "or a filter stops the data channel's port";
    case RailFinding::kWrongHost:
      return "another process answers there: an address is used twice, or routed to another host";
    case RailFinding::kOtherNicThere:
      return "packets arrive at the peer by another of its NICs and fail with that one; on the "
             "peer, as root: "
             "sysctl -w net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.rp_filter=2, then here: "
             "ip neigh flush all";
    case RailFinding::kOtherNicHere:
      return "packets arrive here by another of our NICs and fail with that one; here, as root: "
             "sysctl -w net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.rp_filter=2, then on the "
             "peer: "
             "ip neigh flush all";
  }
  return "?";
}

}  // namespace pullman
