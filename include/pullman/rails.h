// Rails: the pairs of NICs that lead to a peer, and their state. All are values: snapshots that
// belong to the caller and do not change. Nothing here fails.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "pullman/types.h"

namespace pullman {

// What a rail is used for.
enum class RailState : std::uint8_t {
  kUp,       // carries messages
  kSuspect,  // silent while ACKs are overdue: new messages take other rails, its packets wait
  kDown,     // not used: its packets have moved to other rails. Probed now and then
  kProbing,  // answers probes again, and is used again after several answers in a row
  kDrained,  // taken out of use by an operator, or kept out after a failure by
             // Config::sticky_rails: see the reason
};

// Why a rail is in its state.
enum class RailReason : std::uint8_t {
  kNew,          // not probed yet
  kAnswers,      // it answers probes
  kSilent,       // it did not answer probes, while another rail did
  kLinkDown,     // the NIC has lost its link
  kAddressGone,  // the NIC has lost the address that the rail uses
  kTold,         // the peer has reported that it left the rail
  kLossy,        // it loses too many packets
  kFlapping,     // it went down too often lately
  kFailed,       // the NIC has failed
  kOperator,     // Context::drain_rail() at either end, or the peer's sticky_rails
  kResolve,      // the peer's address cannot be reached from this NIC
  kSilentThere,  // the peer has reported that it left the rail, which was silent
};

// The result of a check of a rail (Context::check_rails()): which packets pass, in which direction.
enum class RailFinding : std::uint8_t {
  kNotChecked,   // not checked, or not completely
  kFine,         // packets of the smallest and the largest size pass in both directions
  kUnreachable,  // small packets pass in neither direction
  kOneWayThere,  // small packets reach the peer, but none comes back
  kOneWayBack,   // small packets arrive from the peer, but none reaches it
  kLargeLost,    // small packets pass, the largest do not in at least one direction: because of the
                 // path MTU, or a filter on the data channel's port
  kWrongHost,    // another Pullman process answers at the address that the peer announced
  // Packets of both sizes pass, but they arrive by another NIC of the host than the one they are
  // sent to, so the rail fails together with that NIC. Found if the driver can tell (udp).
  kOtherNicThere,  // at the peer
  kOtherNicHere,   // at this end
};

// Returns the enumerator's name for logs: kUp is "up".
[[gnu::visibility("default")]] const char* name(RailState state);
// Returns the same of a reason: kLinkDown is "the NIC has no link".
[[gnu::visibility("default")]] const char* name(RailReason reason);
// Returns a sentence for the people who run the network.
[[gnu::visibility("default")]] const char* to_sentence(RailFinding finding);
// Returns the enumerator's name for logs: kOneWayThere is "one way there".
[[gnu::visibility("default")]] const char* name(RailFinding finding);

// One rail of one peer.
struct __attribute__((visibility("default"))) RailView {
  unsigned number = 0;  // the same at both ends
  // It is memory that a peer on this host shares with us (Config::shared_memory), and not a pair of
  // NICs. It comes last, with the number 8 and no addresses.
  bool memory = false;
  std::string nic;                       // the name of the local NIC; "memory"
  std::string local;                     // HOST:PORT of the local command channel
  std::string remote;                    // HOST:PORT of the peer's command channel
  bool stream = false;                   // it is a last resort: TCP, or the relay
  std::string via;                       // HOST:PORT of the next hop, if it is relayed
  RailState state = RailState::kDown;    // the current state
  RailReason reason = RailReason::kNew;  // why it is in that
  std::chrono::nanoseconds in_state{0};  // the time since it entered this state
  std::chrono::nanoseconds rtt{0};       // smoothed RTT; 0 before the first sample
  std::uint64_t packet_bytes = 0;        // the largest packet it carries
  std::uint32_t window = 0;              // the congestion window, in packets
  std::uint32_t in_flight = 0;           // packets in flight
  // Of all numbered packets but probes, retransmissions and headers included; 0 with one rail.
  std::uint64_t bytes_sent = 0;
  std::uint64_t packets_sent = 0;  // of the same
  std::uint64_t packets_lost = 0;  // packets declared lost
  std::uint64_t evacuated = 0;     // packets moved to other rails
  std::uint64_t times_left = 0;    // how often it went down
  // The result of the last check. If a peer has several rails, each is checked once when it is new.
  // A fault is cleared when the rail carries messages again.
  RailFinding check = RailFinding::kNotChecked;
  std::chrono::nanoseconds checked_ago{0};  // the time since that check ended
};

// Reports that a rail has begun or ceased to carry messages (Context::take_rail_event()).
struct __attribute__((visibility("default"))) RailEvent {
  PeerId peer;                           // whose rail it is
  unsigned number = 0;                   // as in RailView
  std::string nic;                       // the name of the local NIC
  bool carries = false;                  // whether it carries messages
  RailState state = RailState::kDown;    // the current state
  RailReason reason = RailReason::kNew;  // why it is in that
  std::uint32_t changes = 0;  // of `carries` since the last event; 2: it went down and up again
};

// The result of a check of one rail of one peer.
struct __attribute__((visibility("default"))) RailCheck {
  // Whether packets of one size reached the peer (`there`) and arrived from it (`back`).
  struct Passed {
    std::size_t bytes = 0;  // of the packet
    bool there = false;     // one reached the peer
    bool back = false;      // one arrived from it
  };

  unsigned number = 0;                             // as in RailView
  std::string nic;                                 // as in RailView
  std::string local;                               // as in RailView
  std::string remote;                              // as in RailView
  RailFinding finding = RailFinding::kNotChecked;  // what all of it comes to
  Passed smallest;                                 // over the command channels
  Passed largest;  // over the data channels: the largest that the NICs at both ends take. `back`
                   // is tried only once a packet got `there`
};

}  // namespace pullman
