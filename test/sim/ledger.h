// The ledger: every message sent and every receive completed in a run, with their invariants.
//
// It checks at each completion that a message is received once, intact, by a receive it matches and
// in order; and at the end that all accepted messages were delivered. It sees what programs see, no
// packets.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pullman/context.h"
#include "pullman/request.h"
#include "pullman/types.h"
#include "sim/allowed_failures.h"
#include "sim/content.h"
#include "sim/findings.h"

namespace pullman::sim {

// What a receive asked for.
struct Wanted {
  PeerId source = kAnyPeer;
  Tag tag = 0;
  Tag ignore = 0;
  std::size_t capacity = 0;
  std::uint64_t order = 0;  // of posting, within the process
  std::uint8_t space = 0;
  std::size_t place = 0;  // this message's offset in a buffer for many

  bool accepts(PeerId from, Tag sent, std::uint8_t sent_to) const {
    return (source == kAnyPeer || source == from) && ((sent ^ tag) & ~ignore) == 0 &&
           space == sent_to;
  }
};

// What a receive reports of its message.
struct Receipt {
  Status status = Status::kOk;
  PeerId source;
  Tag tag = 0;
  std::uint64_t message_length = 0;
  std::optional<std::uint64_t> immediate;
};

class Ledger {
 public:
  Ledger(Findings& findings, AllowedFailures& excuses) : findings_(findings), excuses_(excuses) {}

  // Opens the conversation of a process through one of its handles. `host` is set if the process
  // called that host.
  std::uint32_t open(std::uint32_t process, PeerId peer, std::optional<std::uint8_t> host);

  // The handle's peer has been connected.
  void met(std::uint32_t process, PeerId peer);
  bool have_met(std::uint32_t process, PeerId peer) const;

  // Returns the name of a conversation's next message.
  MessageName next(std::uint32_t conversation) const;
  void sent(const MessageName& name, Tag tag, std::size_t length, const SendOptions& options);
  void send_done(const MessageName& name, Status status);
  // BYEs arrive from now on: a send of a message received before the BYE may not fail.
  void expect_good_byes(bool yes) { good_byes_arrive_ = yes; }

  // A receive of `process` is done, its bytes are in `received`.
  void received(std::uint32_t process, const Wanted& wanted, const Receipt& receipt,
                std::span<const std::byte> received);

  // probe() reported this message, which must exist and be unreceived.
  void probed(std::uint32_t process, const Probe& probe);

  // Returns the host that a handle of this process stands for, once known.
  std::optional<std::uint8_t> host_of(std::uint32_t process, PeerId peer) const;

  // Returns the tag of a message that was sent to this process and not yet received.
  std::optional<Tag> awaited(std::uint32_t process, std::uint64_t choice) const;

  // Returns how many messages are owed: accepted, both processes alive, no failure excused, and not
  // received. Reports the first of them if `say`.
  std::size_t owed(const std::vector<std::uint32_t>& living, bool say) const;

  Findings& findings() { return findings_; }
  std::size_t messages() const { return total_messages_; }
  std::size_t deliveries() const { return deliveries_; }

 private:
  struct Message {
    Tag tag = 0;
    std::uint64_t length = 0;
    SendOptions options;
    Status send_status = Status::kPending;
  };
  struct Delivery {
    bool done = false;
    Wanted wanted;
  };
  // What one process received of a conversation. There is a second one only if the first messages
  // reached a process that died before it answered.
  struct Reception {
    std::uint32_t process = 0;
    PeerId source;
    std::vector<Delivery> deliveries;
  };
  struct Conversation {
    std::uint32_t process = 0;
    PeerId peer;
    std::optional<std::uint8_t> host;
    std::vector<Message> messages;
    std::vector<Reception> receptions;
  };

  Reception& reception_of(Conversation& conversation, std::uint32_t process, PeerId source);
  void check_result(const Message& message, const Wanted& wanted, const Receipt& receipt,
                    std::size_t length);
  void check_order(const Conversation& conversation, const Reception& reception, std::size_t index);
  void check_matched(const Conversation& conversation, const MessageName& name) const;
  static bool was_received(const Conversation& conversation, const MessageName& name);
  bool excused(const Conversation& conversation) const;
  void report(const std::string& what, const MessageName& name) const;

  Findings& findings_;
  AllowedFailures& excuses_;
  bool good_byes_arrive_ = false;
  std::vector<Conversation> conversations_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> by_handle_;  // of senders
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> by_source_;  // of receivers
  std::set<std::pair<std::uint32_t, std::uint64_t>> met_;
  std::size_t total_messages_ = 0;
  std::size_t deliveries_ = 0;
};

}  // namespace pullman::sim
