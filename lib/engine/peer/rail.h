// A rail of a peer is one pair of NICs, ours and the peer's, and the link that runs on it.
//
// All packets of its link but ACKs leave through the rail's own module. A rail knows neither
// messages nor the other rails; rail_choice.h decides what each is used for.
#pragma once

#include <boost/intrusive/list.hpp>
#include <cstdint>
#include <memory>

#include "base/guest.h"
#include "channel/module.h"
#include "engine/peer/kept_address.h"
#include "engine/peer/rail_ciphers.h"
#include "nic/port.h"
#include "reliability/link.h"
#include "reliability/replay_window.h"

namespace pullman::engine {

struct Peer;

using channel::Channel;
using channel::ChannelKind;
using channel::Packet;

enum class TimerPurpose : std::uint8_t {
  kNone,          // it was not named, and must not be checked in
  kAck,           // a rail's: an ACK has waited long enough
  kLoss,          // a rail's: a gap has lasted long enough to be a loss
  kRailUpkeep,    // a rail's: failover::Health::next_due()
  kAlarm,         // a peer's: its silence is to be judged
  kCheckAsking,   // a peer's: the next questions of a connectivity check, or its end
  kCheckAnswers,  // a peer's: our answers to one
  kLiveness,      // a peer's: the next question whether it is alive
};

// A timer of one peer or one of its rails. Slot and number name them in half the size of a pointer,
// which fits into the guest's padding.
struct Timer : Guest {
  std::uint32_t peer : 24 = 0;
  std::uint32_t rail : 3 = 0;
  std::uint32_t purpose_bits : 4 = 0;
  TimerPurpose purpose() const { return static_cast<TimerPurpose>(purpose_bits); }
  void name(TimerPurpose purpose, std::uint32_t slot, std::uint32_t number = 0) {
    purpose_bits = static_cast<std::uint32_t>(purpose) & 0xF;
    peer = slot & 0xFFFFFF;
    rail = number & 7;
  }
};
static_assert(sizeof(Timer) == sizeof(Guest));

using ListHook = boost::intrusive::list_member_hook<>;

struct RailName {
  std::uint32_t slot = 0;   // the peer's
  std::uint8_t number = 0;  // wire.md 2.10
  std::uint8_t module = 0;  // our NIC, by its index in the engine
  channel::Module* nic = nullptr;
};

struct LinkSetup {
  const reliability::LinkOptions& options;
  const reliability::LinkResources& shared;
  PacketNumber first_number;
};

constexpr std::uint8_t bit_of(channel::ChannelKind kind) {
  return 1u << static_cast<unsigned>(kind);
}

struct Rail {
  Rail(Peer& of, RailName name, const LinkSetup& setup)
      : peer(of),
        number(name.number),
        module(name.module),
        nic(name.nic),
        link(setup.options, setup.shared, setup.first_number, name.number) {
    ack_timer.name(TimerPurpose::kAck, name.slot, name.number);
    loss_timer.name(TimerPurpose::kLoss, name.slot, name.number);
  }
  Rail(const Rail&) = delete;
  Rail& operator=(const Rail&) = delete;

  Peer& peer;
  std::uint8_t number;
  std::uint8_t module;        // our NIC; the home rail's may change until they have met
  std::uint8_t there = 0;     // the other end's NIC, as it numbers them
  bool ping_due : 1 = false;  // a probe is to be sent
  // Written by the Resolver alone.
  std::uint8_t resolving : 2 = 0;   // channels whose address is being resolved, a bit each
  std::uint8_t stale : 2 = 0;       // those of them whose address has changed since
  std::uint16_t command_bytes = 0;  // largest packet for the other's command channel
  std::uint16_t packet_bytes = 0;   // largest packet on the path, as far as it is known
  channel::Module* nic;             // our NIC, by `module`
  nic::Destination command_to = nic::kInvalidDestination;
  nic::Destination data_to = nic::kInvalidDestination;
  bool resolved() const {
    return command_to != nic::kInvalidDestination && data_to != nic::kInvalidDestination;
  }
  bool is_resolving(channel::ChannelKind kind) const { return (resolving & bit_of(kind)) != 0; }

  KeptAddress remote;  // the address of the peer's command channel

  reliability::Link link;

  // Of protected packets: null while none was sent or received lately.
  std::unique_ptr<RailCiphers> ciphers;
  reliability::ReplayWindow acks_heard;  // the numbers of the control packets that came

  Timer ack_timer;   // an ACK has waited long enough
  Timer loss_timer;  // a gap has lasted long enough to be a loss
  ListHook ack;      // in the list of rails on which an ACK is due this turn
};

using AckList =
    boost::intrusive::list<Rail, boost::intrusive::member_hook<Rail, ListHook, &Rail::ack>,
                           boost::intrusive::constant_time_size<false>>;

}  // namespace pullman::engine
