// Rails: the pairs of NICs that lead to a peer, and how they do. Values: copies of what was so when
// the context was asked, which stay as they are and belong to the caller. Errors: none.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "pullman/types.h"

namespace pullman {

enum class RailState : std::uint8_t {
  kUp,       // carries messages
  kSuspect,  // silent while packets are due: new messages take other rails, what is there waits
  kDown,     // left: everything on it has gone to other rails. Asked again now and then
  kProbing,  // it answers again, and is used again after several answers in a row
  kDrained,  // left because the operator said so; or it failed, and Config::sticky_rails keeps it
             // out: the reason tells
};

// Why it is in that state.
enum class RailReason : std::uint8_t {
  kNew,          // not asked yet
  kAnswers,      // it answers
  kSilent,       // it did not answer, while another rail did
  kLinkDown,     // the NIC has lost its link
  kAddressGone,  // the NIC has lost the address it is used by
  kTold,         // the other end has left it
  kLossy,        // it loses too much of what is sent
  kFlapping,     // it went down too often lately
  kFailed,       // the NIC is beyond use
  kOperator,     // Context::drain_rail, here or at the other end; or kept out there
  kResolve,      // the other end's address cannot be reached from this NIC
};

// What a check of a rail found (Context::check_rails): which packets get there, and back.
enum class RailFinding : std::uint8_t {
  kNotChecked,   // or not to its end
  kFine,         // packets of the smallest and the largest size, both ways
  kUnreachable,  // no small packet, neither way
  kOneWayThere,  // small packets get there, and none comes back
  kOneWayBack,   // small packets come back, and none gets there
  kLargeLost,    // small packets pass; the largest do not, one way at least: the path's MTU, or a
                 // filter on the data channel's port
  kWrongHost,    // another Pullman process has answered at the address that the peer told
  // Packets of both sizes pass, but the rail is none of its own: they arrive by another NIC of the
  // host than the one they are sent to, and fail with that. Where the driver can tell (udp).
  kOtherNicThere,  // at the peer
  kOtherNicHere,
};

[[gnu::visibility("default")]] const char* name(RailState state);
[[gnu::visibility("default")]] const char* name(RailReason reason);
// A sentence for who looks after the network.
[[gnu::visibility("default")]] const char* to_sentence(RailFinding finding);
// The enumerator's name, for logs: "kOneWayThere" is "one way there".
[[gnu::visibility("default")]] const char* name(RailFinding finding);

// One rail of one peer.
struct __attribute__((visibility("default"))) RailView {
  unsigned number = 0;  // the same at both ends
  std::string nic;      // ours: its name
  std::string local;    // HOST:PORT of our command channel
  std::string remote;   // and of its
  bool stream = false;  // the last resort
  RailState state = RailState::kDown;
  RailReason reason = RailReason::kNew;
  std::chrono::nanoseconds in_state{0};  // how long
  std::chrono::nanoseconds rtt{0};       // smoothed; 0 before the first sample
  std::uint64_t packet_bytes = 0;        // so long may packets be
  std::uint32_t window = 0;              // packets that may be in flight
  std::uint32_t in_flight = 0;           // packets
  std::uint64_t bytes_sent = 0;          // of messages, packets sent again included
  std::uint64_t packets_sent = 0;        // with something of a message in them
  std::uint64_t packets_lost = 0;        // judged lost
  std::uint64_t evacuated = 0;           // packets that left for other rails
  std::uint64_t times_left = 0;          // how often it went down
  // By the last check, and how long ago that ended. Where there are several rails each is checked
  // once when it is new. A fault that was found is forgotten when the rail carries again.
  RailFinding check = RailFinding::kNotChecked;
  std::chrono::nanoseconds checked_ago{0};
};

// A rail of a peer carries messages from now on, or no longer does (Context::take_rail_event).
struct __attribute__((visibility("default"))) RailEvent {
  PeerId peer;
  unsigned number = 0;                 // as in RailView
  std::string nic;                     // ours: its name
  bool carries = false;                // messages, now
  RailState state = RailState::kDown;  // now, and why
  RailReason reason = RailReason::kNew;
  std::uint32_t changes = 0;  // since it was told last: 2 went and came again
};

// One rail of one peer, as a check found it.
struct __attribute__((visibility("default"))) RailCheck {
  // Of packets of one size: what got there, and what came back.
  struct Passed {
    std::size_t bytes = 0;  // of the packet
    bool there = false;
    bool back = false;
  };

  unsigned number = 0;  // as in RailView
  std::string nic;
  std::string local;
  std::string remote;
  RailFinding finding = RailFinding::kNotChecked;
  Passed smallest;  // over the command channels
  Passed largest;   // over the data channels: what the NICs at both ends take. Whether it comes
                    // back is not asked before one got there
};

}  // namespace pullman
