// A peer: one remote process, with the link to it and both directions of its messages.
//
// Where the layers' objects of one peer stand side by side; they do not know each other. Its life
// is one enum, changed in Engine::Impl::set_phase only.
#pragma once

#include <boost/intrusive/list.hpp>
#include <cstdint>
#include <memory>

#include "base/guest.h"
#include "engine/kept_address.h"
#include "engine/peer_index.h"
#include "message/inbox.h"
#include "message/outbox.h"
#include "nic/port.h"
#include "pullman/status.h"
#include "pullman/types.h"
#include "reliability/link.h"
#include "wire/header.h"
#include "wire/hello.h"

namespace pullman::engine {

struct Peer;

enum class Phase : std::uint8_t {
  kResolving,  // its addresses are being turned into destinations
  kCalling,    // our HELLO is under way; nothing else may be sent yet
  kAnswering,  // it called; until it proves that it got our WELCOME, it is sent nothing else
  kConnected,  // messages flow both ways
  kClosing,    // we are leaving: what was accepted is still being delivered
  kFarewell,   // our BYE is under way: everything else has been acked
  kGone,       // over: `why` says how it ended. Late packets are acked, nothing else
};
const char* name(Phase phase);

// Of one peer, named by its slot: in half a pointer, which fits into the guest's padding.
struct Timer : Guest {
  std::uint32_t peer = 0;
};
static_assert(sizeof(Timer) == sizeof(Guest));

using ListHook = boost::intrusive::list_member_hook<>;

// What a HELLO said, until its sender has proved itself. Nothing of it is acted on before: whoever
// says that he calls from an address cannot do more than be answered there (wire.md 5.5).
struct Introduction {
  wire::Hello hello;
  wire::PacketHeader header;          // of its last HELLO
  Instant heard_at{};                 // when that came
  channel::Packet* riders = nullptr;  // what came with the first; null: nothing, or no room for it

  bool crossed = false;  // we had called it before that came

  bool is(std::uint64_t epoch, wire::ConnectionId reply_to) const {
    return hello.epoch == epoch && hello.reply_to == reply_to;
  }
};

struct PeerSetup {
  const reliability::LinkOptions& link;
  const reliability::LinkResources& link_resources;
  const message::InboxResources& inbox_resources;
  const message::OutboxResources& outbox_resources;
  PeerId id;
  PacketNumber first_number;
  MessageId first_message;
  std::uint64_t allowance;
  std::uint32_t eager_bytes;
  std::size_t first_packet_bytes;
};

struct Peer {
  explicit Peer(const PeerSetup& setup)
      : id(setup.id),
        first_message(setup.first_message),
        link(setup.link, setup.link_resources, setup.first_number),
        outbox(setup.outbox_resources, setup.id.index, setup.first_message,
               setup.first_packet_bytes),
        inbox(setup.inbox_resources, setup.id, setup.allowance, setup.eager_bytes) {
    ack_timer.peer = loss_timer.peer = alarm.peer = setup.id.index;
  }

  // Packets may leave: both ends have proved themselves and both destinations are known.
  bool flows() const {
    return (phase == Phase::kConnected || phase == Phase::kClosing || phase == Phase::kFarewell) &&
           data_to != nic::kNowhere;
  }

  PeerId id;
  Phase phase = Phase::kResolving;
  Status why = Status::kOk;        // once kGone
  bool introduced = false;         // it has proved itself: what it said of itself counts
  bool called_us = false;          // it connected to us, and we had not called it
  bool bye_due = false;            // a BYE is to be sent
  bool ping_due = false;           // a keep-alive probe is to be sent
  bool release_when_gone = false;  // the user disconnected: the handle ends with the peer
  std::uint64_t epoch = 0;         // its incarnation, once introduced
  wire::ConnectionId mine;         // what it must say to us
  wire::ConnectionId theirs;       // what we must say to it, once it was heard
  MessageId first_message;         // our first id, for HELLO
  KeptAddress command_address;     // where it was dialled, or said to be
  nic::Destination command_to = nic::kNowhere;
  nic::Destination data_to = nic::kNowhere;
  std::uint32_t command_bytes = 0;    // largest packet for its command channel
  std::uint32_t heard_tick = 0;       // see Engine::Impl::note_heard
  std::uint32_t next_here = kNoSlot;  // indexed after this one at the same address
  std::uint64_t born = 0;             // counts the peers ever made
  PeerId replaces;                    // ends when this one has proved itself
  channel::Packet* hello = nullptr;   // our HELLO, until it is acked
  std::unique_ptr<Introduction>
      said;            // until it has proved itself, and that it means this connection
  Instant heard_at{};  // a valid packet came
  Instant news_at{};   // something we sent was acked, or operations became pending

  reliability::Link link;
  message::Outbox outbox;
  message::Inbox inbox;

  Timer ack_timer;   // an ACK has waited long enough
  Timer loss_timer;  // a gap has lasted long enough to be a loss
  Timer alarm;       // silence: keep alive, or give up
  ListHook ready;    // in the list of peers with something to send
  ListHook ack;      // in the list of peers owed an ACK this turn
};

using ReadyList =
    boost::intrusive::list<Peer, boost::intrusive::member_hook<Peer, ListHook, &Peer::ready>,
                           boost::intrusive::constant_time_size<true>>;
using AckList =
    boost::intrusive::list<Peer, boost::intrusive::member_hook<Peer, ListHook, &Peer::ack>,
                           boost::intrusive::constant_time_size<false>>;

}  // namespace pullman::engine
