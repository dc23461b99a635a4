// The health of one rail of one peer: derives the rail's state from evidence.
//
// Silence alone is no evidence against a rail, since the peer may be busy or gone. A rail has
// failed if it is silent while another rail to the same peer answers packets that were sent later.
// A rail that is down is probed with growing pauses, and used again after several answers in a row.
// One that goes down repeatedly is kept out for a while, by a penalty that decays (route flap
// damping, RFC 2439). A host's other work may delay one NIC and not another, so a rail that was
// left for silence may have been late only: if it answers the first probe and those after it, it
// has lost nothing, and gets no penalty. Pure: no clock, no I/O. Does not know packets or links;
// the engine reports events on them, and sends the probes that are due
// (engine/rails/rail_manager.h).
#pragma once

#include <cstdint>

#include "base/time.h"
#include "pullman/rails.h"

namespace pullman::failover {

class Health {
 public:
  // The smoothed RTT (0: no sample yet) and the probe timeout of the rail's link.
  struct Pace {
    Duration rtt{};
    Duration timeout{};
  };

  // A packet that was sent on another rail at `sent_at` was acknowledged, so the peer is alive.
  struct Witness {
    Instant sent_at{};
    Instant heard_at = Instant::min();  // when a packet last came over this rail
    bool crowded = false;               // an end has lately often not polled (absences.h)
  };

  // Starts a new rail: it is down, and probed at once. Keeps what the NIC has reported of its link,
  // and a drained rail drained.
  void begin(Instant now);
  // The peer's address cannot be reached now. handle_due() tries again, with growing pauses.
  void handle_unresolved(Instant now);
  // Starts the rail of the handshake, which has just worked: it is up.
  void begin_up(Instant now);

  // --- getters
  RailState state() const { return state_; }
  RailReason reason() const { return reason_; }
  Instant since() const { return since_; }
  // Returns true if new packets may take the rail.
  bool up() const { return state_ == RailState::kUp; }
  // Returns true if the rail keeps its packets; it takes new ones, too, if no rail is up.
  bool usable() const { return state_ == RailState::kUp || state_ == RailState::kSuspect; }
  // Returns true if overdue probes that have waited for this long are no evidence of silence: the
  // last time the rail was suspect, its peer, which polls rarely, took longer to answer. Otherwise
  // rails would be probed for ever, each because the probe of another is unanswered.
  bool is_patient(Duration waited) const { return waited < took_; }
  // Returns when handle_due() is to be called; kNever if not at all.
  Instant next_due() const { return due_; }
  double penalty(Instant now) const;

  // --- input. Unless noted otherwise bool means that the state has changed.
  // A packet on this rail is overdue that was sent `waited` ago.
  bool handle_silence(Instant now, Pace pace, Duration waited = {});
  // A packet sent on this rail at `sent_at` was acknowledged over this rail. `alone` means that no
  // other rail is up, so that one answer is enough to use this one, whatever its history.
  bool handle_answer(Instant now, Instant sent_at, Pace pace, bool alone = false);
  // A rail on which packets still arrive is not silent, since its ACKs may queue behind the peer's
  // data. It gets more time; if our packets are lost, the peer hears nothing and reports that
  // earlier. Packets from before the rail became suspect gain it no time. A rail between crowded
  // hosts gets more time, too: where processes wait for a processor, so may the kernel's thread
  // that receives from one NIC. Either end may stop between two rails, when it has read one of
  // them, or has answered on one: so of the packets that the peer acknowledges two more must each
  // have been sent after the answer to the one before, since by the second of them it has read all
  // rails and answered on all. Returns true if next_due() has changed: the verdict waits for
  // handle_due() in the next turn, before which all rails are to be read once more, since an answer
  // on this one may have come.
  bool handle_witness(Instant now, const Witness& witness);
  // Takes the rail down or drains it: for the NIC's link, the peer, the operator, or a loss rate.
  bool leave(Instant now, RailReason reason);
  // Drains a rail that went down, until allow(). Its reason stays.
  void keep_out(Instant now);
  // The NIC's link is up again. The rail is probed soon, unless it is drained.
  bool handle_link_up(Instant now);
  // Ends the drained state. The rail is probed soon.
  bool allow(Instant now);
  // Probes a rail that is down at once, however long its pause is, since the peer uses it again or
  // no other rail is up.
  void ask_at_once(Instant now);

  // Called at next_due(). Returns true if a probe is to be sent now. May take the rail down.
  bool handle_due(Instant now, Pace pace);

 private:
  // Whether a rail that is down may have been late only.
  enum class Lateness : std::uint8_t {
    kExcluded,  // it was left for another reason than silence, or a probe was lost since
    kPossible,  // it was left for silence, and its first probe may still be answered
    kLikely,    // its first probe was answered, and none was lost since
  };

  static constexpr Duration kFirstPause = std::chrono::milliseconds(2);
  // The pause before the first probe over a link that is up again. The probe makes the kernel
  // resolve the neighbour's address; if the neighbour is not ready yet, the kernel asks again only
  // after a second (Linux: retrans_time_ms).
  static constexpr Duration kSettling = std::chrono::milliseconds(2);
  static constexpr Duration kLongestPause = std::chrono::milliseconds(200);
  static constexpr Duration kDampedPause = std::chrono::milliseconds(20);
  static constexpr Duration kLeastInterval = std::chrono::microseconds(300);
  static constexpr Duration kMaxInterval = std::chrono::milliseconds(3);
  // A rail that may be late gets this much time from the first witness on: some time slices.
  static constexpr Duration kLatePatience = std::chrono::milliseconds(25);
  // A rail is still heard if a packet came within this time, or within two probe intervals.
  static constexpr Duration kHeardLately = std::chrono::milliseconds(2);
  // The first probe of a rail that was left for silence may be answered this late.
  static constexpr Duration kMaxLateness = std::chrono::milliseconds(20);
  // The number of unanswered probes before a witness counts.
  static constexpr std::uint8_t kQuestions = 3;
  // The witnesses that must follow one that comes after that many probes.
  static constexpr std::uint8_t kConfirmations = 2;
  static constexpr std::uint8_t kGoodAnswers = 3;
  static constexpr std::uint8_t kMaxDoublings = 10;
  static constexpr Duration kLongestPatience = std::chrono::seconds(2);
  // The answers needed from a rail that was lossy.
  static constexpr std::uint8_t kManyGoodAnswers = 20;
  static constexpr Duration kHalfLife = std::chrono::seconds(1);
  static constexpr double kPenaltyCut = 2.5;    // the rail is kept out from here on
  static constexpr double kPenaltyReuse = 1.0;  // and used again below this
  static constexpr double kPenaltyMost = 4.0;

  void set(Instant now, RailState state, RailReason reason);
  bool still_heard(Instant now, Instant heard_at) const;
  void go_down(Instant now, RailReason reason);
  void pardon();
  void come_back(Instant now);
  bool damped(Instant now);
  void miss(Instant now);
  Duration patience(Pace pace) const;
  static Duration interval(Pace pace);

  RailState state_ = RailState::kDown;
  RailReason reason_ = RailReason::kNew;
  std::uint8_t questions_ = 0;      // suspect: unanswered probes
  std::uint8_t confirmations_ = 0;  // suspect: witnesses that came after enough probes
  std::uint8_t good_ = 0;           // down or probing: answers in a row
  std::uint8_t needed_ = 1;         // answers in a row needed to be used again
  bool link_down_ = false;          // the NIC has lost its link or address
  bool drained_ = false;            // by an operator at either end, or by keep_out()
  bool witnessed_ = false;          // suspect: the peer answers on another rail
  bool damped_ = false;             // kept out for flapping
  bool waiting_ = false;            // down or probing: a probe is unanswered
  Lateness lateness_ = Lateness::kExcluded;
  bool was_damped_ = false;  // damped_ before it was left
  bool missed_ = false;      // down or probing: an earlier probe was missed since the last answer
  std::uint8_t doublings_ = 0;  // of the probes' timeout, since the rail went down
  Instant since_{};
  Instant due_ = kNever;
  Instant asked_at_{};  // when it became suspect or went down: earlier packets are no evidence
  Instant overdue_{};   // suspect: when the overdue packet was sent
  Duration took_{};     // from overdue_ to the answer, the last time it was suspect
  Instant alive_at_ = kNever;  // suspect: when the first witness came
  Instant confirmed_at_{};     // suspect: when the last of those came
  Duration pause_ = kFirstPause;
  Duration first_pause_ = kFirstPause;  // suspect: the interval of probes
  double penalty_ = 0;                  // as of penalty_at_
  Instant penalty_at_{};                // when it was left last
  double penalty_before_ = 0;           // without that time, as of penalty_at_
};

}  // namespace pullman::failover
