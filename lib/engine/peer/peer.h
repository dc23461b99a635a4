// A peer: one remote process, with the link to it and both directions of its messages.
//
// Where the layers' objects of one peer stand side by side; they do not know each other. Its life
// is one enum, changed in PeerLifecycle::set_phase only.
//
// It has more than 30 members: one block of memory per peer, most of which is the layers' objects,
// the rest what two engines know of each other. What few peers need has blocks of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/peer/checking.h"
#include "engine/peer/kept_address.h"
#include "engine/peer/peer_index.h"
#include "engine/peer/rail.h"
#include "engine/peer/rails.h"
#include "message/rma/one_sided.h"
#include "message/rx/inbox.h"
#include "message/tx/outbox.h"
#include "pullman/status.h"
#include "pullman/types.h"
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

// What a HELLO said, until its sender has proved itself. Nothing of it is acted on before: whatever
// claims to call from an address can only be answered there (wire.md 5.5).
struct PendingHello {
  wire::Hello hello;
  wire::PacketHeader header;  // of its last HELLO
  Instant heard_at{};         // when that came
  channel::Packet* early_data =
      nullptr;  // what came with the first; null: nothing, or no room for it

  bool crossed = false;       // we had called it before that came
  std::uint8_t declined = 0;  // answers to our call, since its call is to count

  // It is answered by the NIC it called, where it called from.
  std::uint8_t module = 0;
  bool elsewhere = false;  // that is not the home rail: it has a destination of its own
  bool resolving = false;
  std::uint8_t asked = 0;  // then: for which of its NICs
  nic::Destination to = nic::kInvalidDestination;
  const nic::Address& address() const { return hello.nics[hello.nic].command; }

  bool is(std::uint64_t epoch, wire::ConnectionId reply_to) const {
    return hello.epoch == epoch && hello.reply_to == reply_to;
  }
};

// What few peers have: NICs that were told again, or addresses that are believed.
struct NicNews {
  std::vector<nic::Address> named;  // those it says are its own, if that is believed; or none
  std::uint32_t lists_told = 0;     // of our NICs, since we met
  std::uint32_t lists_heard = 0;    // the newest of its
};

struct PeerSetup {
  const reliability::LinkOptions& link;
  const reliability::LinkResources& link_resources;
  const message::InboxResources& inbox_resources;
  const message::OutboxResources& outbox_resources;
  PeerId id;
  std::uint8_t module;  // of the rail they meet on
  channel::Module* nic;
  PacketNumber first_number;
  MessageId first_message;
  std::size_t first_packet_bytes;
};

struct Peer {
  explicit Peer(const PeerSetup& setup)
      : id(setup.id),
        first_message(setup.first_message),
        home(*this, {.slot = setup.id.index, .number = 0, .module = setup.module, .nic = setup.nic},
             {setup.link, setup.link_resources, setup.first_number}),
        outbox(setup.outbox_resources, setup.id.index, setup.first_message,
               setup.first_packet_bytes),
        one_sided(outbox),
        inbox(setup.inbox_resources, setup.id, &one_sided) {
    alarm.name(TimerPurpose::kAlarm, setup.id.index);
  }

  // Of two that have not ended, and between whose births were fewer than 2^31 others.
  bool is_older_than(const Peer& other) const {
    return static_cast<std::int32_t>(born - other.born) < 0;
  }

  // Null if there is none of that number.
  Rail* rail(std::size_t number) {
    if (number == 0) [[likely]]
      return &home;
    return rails == nullptr ? nullptr : rails->more[number].get();
  }
  template <typename Visit>
  void for_each_rail(Visit visit) {
    visit(home);
    if (rails == nullptr) return;
    for (const auto& rail : rails->more) {
      if (rail != nullptr) visit(*rail);
    }
  }
  template <typename Visit>
  void for_each_rail(Visit visit) const {
    const_cast<Peer*>(this)->for_each_rail([&](const Rail& rail) { visit(rail); });
  }

  // Packets may leave: both ends have proved themselves and both destinations of a rail are known.
  bool flows() const {
    return (phase == Phase::kConnected || phase == Phase::kClosing || phase == Phase::kFarewell) &&
           (home.resolved() || (rails != nullptr && rails->any_resolved()));
  }

  PeerId id;
  Phase phase = Phase::kResolving;
  Status why = Status::kOk;             // once kGone
  bool introduced : 1 = false;          // it has proved itself: what it said of itself counts
  bool called_us : 1 = false;           // it connected to us, and we had not called it
  bool bye_due : 1 = false;             // a BYE is to be sent
  bool refused : 1 = false;             // when last served: nothing left, for others' sake
  bool nics_due : 1 = false;            // the list of our NICs is to be told anew
  bool release_when_gone : 1 = false;   // the user disconnected: the handle ends with the peer
  std::uint8_t told = 0;                // how many of our NICs it has been told
  std::uint16_t first_credit = 1;       // what each of its NICs can hold at first
  std::uint64_t epoch = 0;              // its incarnation, once introduced
  wire::ConnectionId mine;              // what it must say to us
  wire::ConnectionId theirs;            // what we must say to it, once it was heard
  MessageId first_message;              // our first id, for HELLO
  PacketNumber first_number_there = 0;  // of each of its links, once introduced
  std::unique_ptr<NicNews> nic_news;    // null: none to remember
  KeptAddress command_address;          // where it was dialled, or first said to be
  std::uint8_t aims = 0;                // counts where it was to be answered
  std::uint8_t unresolved = 0;          // our NICs that know no way there: a bit for each
  std::uint16_t call = 0;               // counts the NICs we have called it by
  std::uint32_t heard_tick = 0;         // see CreditAllocator::note_heard
  std::uint32_t next_here = kNoSlot;    // indexed after this one at the same address
  std::uint32_t born = 0;               // counts the peers made, round and round
  PeerId replaces;                      // ends when this one has proved itself
  channel::Packet* hello = nullptr;     // our HELLO, until it is acked
  std::unique_ptr<PendingHello>
      said;            // until it has proved itself, and that it means this connection
  Instant heard_at{};  // a valid packet came
  Instant refused_at = Instant::min();  // its host said that nobody listens there
  Instant news_at{};                    // something we sent was acked, or operations became pending

  Rail home;                           // the one they met on: number 0
  std::unique_ptr<Rails> rails;        // the others; null while there are none
  std::unique_ptr<Checking> checking;  // of them; null while there was none
  message::Outbox outbox;
  message::OneSided one_sided;
  message::Inbox inbox;

  Timer alarm;     // silence: keep alive, or give up
  ListHook ready;  // in the list of peers with something to send
};
static_assert(sizeof(Peer) <= 1024, "an idle peer takes 1064 bytes at most, what it points to too");

using ReadyList =
    boost::intrusive::list<Peer, boost::intrusive::member_hook<Peer, ListHook, &Peer::ready>,
                           boost::intrusive::constant_time_size<true>>;

}  // namespace pullman::engine
