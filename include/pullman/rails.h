// Rails: the pairs of NICs that lead to a peer, and how they do.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace pullman {

enum class RailState : std::uint8_t {
  kUp,       // carries messages
  kSuspect,  // silent while packets are due: new messages take other rails, what is there waits
  kDown,     // left: everything on it has gone to other rails. Asked again now and then
  kProbing,  // it answers again, and is used again after several answers in a row
  kDrained,  // left because the operator said so
};

// Why it is in that state.
enum class RailReason : std::uint8_t {
  kNew,       // not asked yet
  kAnswers,   // it answers
  kSilent,    // it did not answer, while another rail did
  kLinkDown,  // the NIC has lost its link
  kTold,      // the other end has left it
  kLossy,     // it loses too much of what is sent
  kFlapping,  // it went down too often lately
  kFailed,    // the NIC is beyond use
  kOperator,  // Context::drain_rail, here or at the other end
  kResolve,   // the other end's address cannot be reached from this NIC
};

[[gnu::visibility("default")]] const char* name(RailState state);
[[gnu::visibility("default")]] const char* name(RailReason reason);

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
};

}  // namespace pullman
