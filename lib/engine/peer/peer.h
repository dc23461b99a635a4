// A peer is one remote process, with the link to it and both directions of its messages.
//
// The layers' objects of one peer stand side by side here and do not know each other. Its life is
// one enum, which only PeerLifecycle::set_phase changes.
//
// It has more than 30 members since a peer is one block of memory: the layers' objects, and what
// two engines know of each other. State that few peers need has blocks of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/local/memory_link.h"
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
  // It is over, and `why` says how. After an orderly end late packets are acked, nothing else.
  kGone,
};
const char* name(Phase phase);

// The content of a HELLO, until its sender has proved itself. Nothing of it takes effect before:
// anybody may claim to call from an address, and can only be answered there (wire.md 5.5).
struct PendingHello {
  wire::Hello hello;
  wire::PacketHeader header;  // of the last HELLO
  Instant heard_at{};         // when the last HELLO came
  // Frames that came with the first HELLO; null: none, or there was no packet for them.
  channel::Packet* early_data = nullptr;

  std::uint8_t key = 0;       // which of the job's keys it was sealed with
  bool crossed = false;       // our HELLO had left before this one came
  std::uint8_t declined = 0;  // answers to our call that were dropped, since the peer's call counts

  // The answer leaves by the NIC that was called, for the NIC that called.
  std::uint8_t module = 0;
  bool elsewhere = false;  // not on the home rail: it has a destination of its own
  bool resolving = false;
  std::uint8_t asked = 0;  // while resolving: which of the caller's NICs our NIC was asked about
  nic::Destination to = nic::kInvalidDestination;
  const nic::Address& address() const { return hello.nics[hello.nic].command; }

  bool is(std::uint64_t epoch, wire::ConnectionId reply_to) const {
    return hello.epoch == epoch && hello.reply_to == reply_to;
  }
};

// State that few peers need: lists of NICs that were sent again, or addresses that we believe.
struct NicNews {
  std::vector<nic::Address> named;  // the peer calls them its own, and Config says to believe it
  std::uint32_t lists_told = 0;     // our lists sent since the connection began
  std::uint32_t lists_heard = 0;    // the count of the newest list of the peer
};

struct PeerSetup {
  const reliability::LinkOptions& link;
  const reliability::LinkResources& link_resources;
  const message::InboxResources& inbox_resources;
  const message::OutboxResources& outbox_resources;
  PeerId id;
  std::uint8_t module;  // our NIC of the rail on which the two meet
  channel::Module* nic;
  PacketNumber first_number;
  MessageId first_message;
  std::size_t first_packet_bytes;
};

struct Peer {
  static constexpr std::uint8_t kAnyKey = 0x0F;

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

  // Compares two peers that have not ended, and between whose births fewer than 2^31 others were
  // made.
  bool is_older_than(const Peer& other) const {
    return static_cast<std::int32_t>(born - other.born) < 0;
  }

  // Returns the rail through memory if packets leave by it, or null.
  MemoryRail* memory_rail() const {
    const bool active = memory != nullptr && memory->state == MemoryState::kActive;
    return active ? &*memory->rail : nullptr;
  }
  // Returns the rail of that number, or null.
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

  // Returns whether packets may leave: both ends have proved themselves and both destinations of a
  // rail are known.
  bool flows() const {
    return (phase == Phase::kConnected || phase == Phase::kClosing || phase == Phase::kFarewell) &&
           (home.resolved() || (rails != nullptr && rails->any_resolved()));
  }

  PeerId id;
  Phase phase = Phase::kResolving;
  Status why = Status::kOk;     // once kGone
  bool introduced : 1 = false;  // it has proved itself: what it said of itself counts
  bool called_us : 1 = false;   // it connected to us, and we had not called it
  bool bye_due : 1 = false;     // a BYE is to be sent
  bool refused : 1 = false;     // nothing left when last served: others used the ports or packets
  bool nics_due : 1 = false;    // our list of NICs is to be sent again
  bool may_share : 1 = false;   // it is on this host, and memory was not tried yet
  bool memory_due : 1 = false;  // a MEMORY frame is to be sent: we offer memory, or decline it
  bool release_when_gone : 1 = false;    // the user disconnected: the handle ends with the peer
  std::uint8_t told = 0;                 // number of our NICs that the peer has been told
  std::uint8_t key : 4 = 0;              // which of the job's keys our packets are sealed with
  std::uint8_t heard_key : 4 = kAnyKey;  // which the peer's are; kAnyKey: none was opened yet
  std::uint16_t first_credit = 1;        // what each of its NICs can hold at first, in packets
  std::uint64_t epoch = 0;               // its incarnation, once introduced
  wire::ConnectionId mine;               // the connection id that its packets must carry
  wire::ConnectionId theirs;            // the connection id that our packets must carry, once known
  MessageId first_message;              // our first id, for HELLO
  PacketNumber first_number_there = 0;  // of each of the peer's links, once introduced
  std::unique_ptr<NicNews> nic_news;    // null: there is none
  KeptAddress command_address;          // the address that we called, or that its first HELLO named
  std::uint8_t aims = 0;                // counts the addresses at which it was to be answered
  std::uint8_t unresolved = 0;          // our NICs that have no route there: a bit for each
  std::uint16_t call = 0;               // counts the NICs by which we have called it
  std::uint32_t heard_tick = 0;         // see CreditAllocator::note_heard
  std::uint32_t next_here = kNoSlot;    // the peer indexed next at the same address
  std::uint32_t born = 0;               // the peer's serial number, which wraps
  PeerId replaces;                   // the earlier peer, which ends when this one has proved itself
  channel::Packet* hello = nullptr;  // our HELLO, until it is acked
  // Its HELLO, until it has proved itself, and that it means this connection.
  std::unique_ptr<PendingHello> said;
  // When a valid packet last came, or, if that is later, when we began to wait for one.
  Instant heard_at{};
  Instant refused_at = Instant::min();  // when its host said that nobody listens there
  Instant news_at{};                    // when something was acked, or operations became pending

  Rail home;                           // rail 0, on which the two met
  std::unique_ptr<Rails> rails;        // the others; null while there are none
  std::unique_ptr<MemoryLink> memory;  // null while nothing was sent to a peer on this host
  std::unique_ptr<Checking> checking;  // a connectivity check; null while there was none
  message::Outbox outbox;
  message::OneSided one_sided;
  message::Inbox inbox;

  Timer alarm;     // expires on silence: probes the peer, or ends it
  ListHook ready;  // in the list of peers that have something to send
};
static_assert(sizeof(Peer) <= 1064, "an idle peer takes 1115 bytes, what it points to too");

using ReadyList =
    boost::intrusive::list<Peer, boost::intrusive::member_hook<Peer, ListHook, &Peer::ready>,
                           boost::intrusive::constant_time_size<true>>;

}  // namespace pullman::engine
