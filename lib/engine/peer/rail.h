// A rail of a peer: one pair of NICs, ours and its, and the link that runs on it.
//
// Packets of a link leave through its own module only, but for ACKs. Does not know what messages
// are, nor the other rails: which of them is used for what, rail_choice.h decides.
#pragma once

#include <boost/intrusive/list.hpp>
#include <cstdint>

#include "base/guest.h"
#include "channel/module.h"
#include "engine/peer/kept_address.h"
#include "nic/port.h"
#include "reliability/link.h"

namespace pullman::engine {

struct Peer;

using channel::Channel;
using channel::ChannelKind;
using channel::Packet;

enum class TimerPurpose : std::uint8_t {
  kNone,          // it was not named: it must not be checked in
  kAck,           // a rail's: an ACK has waited long enough
  kLoss,          // a rail's: a gap has lasted long enough to be a loss
  kRailUpkeep,    // a rail's: failover::Health::next_due()
  kAlarm,         // a peer's: silence
  kCheckAsking,   // a peer's: the next questions of a connectivity check, or its end
  kCheckAnswers,  // a peer's: our answers to one
  kLiveness,      // a peer's: the next question whether it is still there
};

// Of one peer or one of its rails, named by slot and number: in half a pointer, which fits into the
// guest's padding.
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
  std::uint8_t module;        // of the home rail until they have met: see handshake/initiator.cc
  std::uint8_t there = 0;     // the other end's NIC, as it numbers them
  bool ping_due : 1 = false;  // a probe is to be sent
  std::uint8_t resolving : 2 = 0;   // channels whose address our NIC was asked about: a bit each,
  std::uint8_t stale : 2 = 0;       // and those of which that is another by now
  std::uint16_t command_bytes = 0;  // largest packet for the other's command channel
  std::uint16_t packet_bytes = 0;   // largest packet on the path, as it is known
  channel::Module* nic;             // that is `module`
  nic::Destination command_to = nic::kInvalidDestination;
  nic::Destination data_to = nic::kInvalidDestination;
  bool resolved() const {
    return command_to != nic::kInvalidDestination && data_to != nic::kInvalidDestination;
  }

  KeptAddress remote;  // its command channel

  reliability::Link link;

  Timer ack_timer;   // an ACK has waited long enough
  Timer loss_timer;  // a gap has lasted long enough to be a loss
  ListHook ack;      // in the list of rails owed an ACK this turn
};

using AckList =
    boost::intrusive::list<Rail, boost::intrusive::member_hook<Rail, ListHook, &Rail::ack>,
                           boost::intrusive::constant_time_size<false>>;

}  // namespace pullman::engine
