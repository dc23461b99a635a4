// The connectivity check (wire.md 9.8, 9.9) finds out which packets get through, the smallest and
// the largest, on every rail and in both directions. Its packets have no numbers, wait for nothing
// and prove nothing to the links. Liveness asks by the same packets, and a peer has one round at a
// time for both. This class sends our questions and answers, and keeps the result; both are
// bounded, however many peers ask and how often.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/keyed_random.h"
#include "engine/nics/poll_clock.h"
#include "engine/peer/alarms.h"
#include "engine/peer/peer_table.h"
#include "engine/send/packet_sender.h"
#include "pullman/rails.h"
#include "pullman/status.h"
#include "wire/check.h"

namespace pullman::engine {

class PathCheck {
 public:
  // The job has `keys` keys; 0: packets are not protected.
  PathCheck(const PeerTable& peers, const NicTable& nics, const PacketSender& sender,
            const PollClock& clock, Alarms& alarms, KeyedRandom& random, std::size_t keys)
      : peers_(peers),
        nics_(nics),
        sender_(sender),
        clock_(clock),
        alarms_(alarms),
        random_(random),
        keys_(keys) {}

  // --- asking

  Status begin(Instant now, PeerId id, Duration limit);
  // Checks a new rail; rails come up one by one. If a check is running for another reason, it
  // includes the new rail within the time it has.
  void check_new_rail(Instant now, Peer& peer);
  void handle_asking_due(Instant now, Peer& peer);
  // Handles an answer. If no check is running, it clears the liveness probe.
  void handle_answer(const Rail& rail, const wire::Checked& checked, bool elsewhere);
  // Returns the result of the last check that ended; nothing while one runs.
  std::optional<std::vector<RailCheck>> result(PeerId id) const;
  // Ends what runs with a peer that has ended.
  void end(Peer& peer);

  // Liveness asks on one rail, in a round of its own: next_round() begins the round, ask_on() sends
  // its question.
  wire::CheckRound next_round(Peer& peer);
  void ask_on(const Rail& rail, wire::CheckSize size) const;

  // --- answering

  void handle_question(Instant now, const Rail& rail, const wire::Check& check, bool elsewhere);
  void handle_answers_due(Instant now, Peer& peer);
  // Returns the least length in bytes of a CHECK or CHECKED that claims to be of that size.
  std::size_t least_length(const Rail& rail, wire::CheckSize size) const;

 private:
  std::optional<std::uint8_t> key_for(const Peer& peer) const;
  void start_asking(Instant now, Peer& peer, Duration limit, Duration delay);
  void arm_asking(Instant now, Asking& asking, Instant due);
  void ask(const Peer& peer) const;
  void end_asking(Peer& peer);
  void warn_other_nic(const Rail& rail, RailFinding found);
  void answer_on(const Rail& rail, wire::CheckSize size) const;

  const PeerTable& peers_;
  const NicTable& nics_;
  const PacketSender& sender_;
  const PollClock& clock_;
  Alarms& alarms_;
  KeyedRandom& random_;
  const std::size_t keys_;
  bool warned_other_nic_ = false;
};

}  // namespace pullman::engine
