// How one rail of one peer does: from evidence to its state.
//
// Silence alone blames nobody: the peer may be busy, or gone. A rail is at fault if it is silent
// while another rail to the same peer answers what was asked later. A rail that was left is asked
// with growing pauses, and taken back after several answers in a row; one that goes down again and
// again is kept out for a while (a penalty that decays, as RFC 2439 damps routes). Pure: no clock,
// no I/O. Does not know packets or links; the engine says what happened on them, asks what is due,
// and does it (engine/rails/rail_manager.h).
#pragma once

#include <cstdint>

#include "base/time.h"
#include "pullman/rails.h"

namespace pullman::failover {

class Health {
 public:
  // Round trip and timeout of the rail's link, as they are measured now.
  struct Pace {
    Duration rtt{};
    Duration timeout{};
  };

  // A rail that has not carried anything yet is asked first. What its NIC or the operator said
  // before holds.
  void begin(Instant now);
  // Its address cannot be reached now. handle_due() asks again, later and later.
  void handle_unresolved(Instant now);
  // The rail the peers met on: it has just worked.
  void begin_up(Instant now);

  // --- getters
  RailState state() const { return state_; }
  RailReason reason() const { return reason_; }
  Instant since() const { return since_; }
  // New work may go there.
  bool up() const { return state_ == RailState::kUp; }
  // What is on it stays, and if no rail is up it carries on.
  bool usable() const { return state_ == RailState::kUp || state_ == RailState::kSuspect; }
  // When it was suspect last, what was overdue was answered after longer than that: its peer looks
  // seldom. Questions alone that are overdue say nothing yet. Or rails would be asked for ever,
  // each since another one, which was asked with it, has not answered yet.
  bool is_patient(Duration waited) const { return waited < took_; }
  // When handle_due() has something to say; kNever: nothing.
  Instant next_due() const { return due_; }
  double penalty(Instant now) const;

  // --- input. Those that return bool: true if the state has changed.
  // A packet on it that was sent so long ago is overdue.
  bool handle_silence(Instant now, Pace pace, Duration waited = {});
  // Something sent on it at `sent_at` was acknowledged, over this rail. `alone`: no other rail is
  // up, so one answer is enough to use it, whatever it did before.
  bool handle_answer(Instant now, Instant sent_at, Pace pace, bool alone = false);
  // Something sent on another rail at `sent_at` was acknowledged: the peer is alive. `heard_at`:
  // when a packet came over this rail last. One that is still heard is not silent: its answers may
  // queue behind what the peer sends. It is given more time, and the peer, who hears nothing if
  // packets do not get there, will say so earlier; what came last of a rail that has died since
  // gains it none. Nothing is judged before handle_due(), when all that has come is read: the
  // rail's own answer may be among it. True: next_due() has changed.
  bool handle_witness(Instant now, Instant sent_at, Instant heard_at = Instant::min());
  // The NIC's link, the other end, the operator or the measurements say that it is to be left.
  bool leave(Instant now, RailReason reason);
  // It has been left, and is not asked before allow(). Why it was left stays the reason.
  void keep_out(Instant now);
  // The NIC's link is back: ask soon, unless it is kept out.
  bool handle_link_up(Instant now);
  // The operator, or who kept it out, allows it again: ask soon.
  bool allow(Instant now);
  // The other end's complaint is over, or no other rail is up: a rail that was left is asked at
  // once, however long the pause was.
  void ask_at_once(Instant now);

  // next_due() has come. True: a probe is to be sent now. The rail may have gone down.
  bool handle_due(Instant now, Pace pace);

 private:
  static constexpr Duration kFirstPause = std::chrono::milliseconds(2);
  // The first packet over a link that is back makes the kernel ask for the neighbour's address. If
  // the neighbour's end is not ready yet, it asks again after a second (Linux: retrans_time_ms).
  static constexpr Duration kSettling = std::chrono::milliseconds(2);
  static constexpr Duration kLongestPause = std::chrono::milliseconds(200);
  static constexpr Duration kDampedPause = std::chrono::milliseconds(20);
  static constexpr Duration kLeastInterval = std::chrono::microseconds(300);
  static constexpr Duration kMaxInterval = std::chrono::milliseconds(3);
  static constexpr Duration kHeardPatience = std::chrono::milliseconds(25);
  // What is still heard was heard this lately, or two questions ago.
  static constexpr Duration kHeardLately = std::chrono::milliseconds(2);
  // Unanswered questions before a witness is believed.
  static constexpr std::uint8_t kQuestions = 3;
  static constexpr std::uint8_t kGoodAnswers = 3;
  static constexpr std::uint8_t kMaxDoublings = 10;
  static constexpr Duration kLongestPatience = std::chrono::seconds(2);
  // Of a rail that lost some packets but not all.
  static constexpr std::uint8_t kManyGoodAnswers = 20;
  static constexpr Duration kHalfLife = std::chrono::seconds(1);
  static constexpr double kPenaltyCut = 2.5;    // from here on it is kept out,
  static constexpr double kPenaltyReuse = 1.0;  // until here
  static constexpr double kPenaltyMost = 4.0;

  void set(Instant now, RailState state, RailReason reason);
  bool still_heard(Instant now, Instant heard_at) const;
  void go_down(Instant now, RailReason reason);
  void come_back(Instant now);
  bool damped(Instant now);
  void miss(Instant now);
  Duration patience(Pace pace) const;
  static Duration interval(Pace pace);

  RailState state_ = RailState::kDown;
  RailReason reason_ = RailReason::kNew;
  std::uint8_t questions_ = 0;  // unanswered, since it is suspect
  std::uint8_t good_ = 0;       // answers in a row, since it is asked again
  std::uint8_t needed_ = 1;     // of those, to be used again
  bool link_down_ = false;      // says the NIC
  bool drained_ = false;        // says the operator, here or there; or it is kept out
  bool witnessed_ = false;      // suspect: the peer answers elsewhere
  bool damped_ = false;         // kept out for flapping
  bool waiting_ = false;        // down or probing: a question is unanswered
  bool missed_ = false;         // down or probing: so was one before, since the last answer
  std::uint8_t doublings_ = 0;  // of a question's patience, since it was left
  Instant since_{};
  Instant due_ = kNever;
  Instant asked_at_{};  // what was sent earlier is no evidence: when it became suspect, or was left
  Instant overdue_{};   // suspect: when what had no answer in time was sent
  Duration took_{};     // from then to the answer, the last time
  Instant alive_at_ = kNever;  // suspect: when the first witness came since
  Duration pause_ = kFirstPause;
  Duration first_pause_ = kFirstPause;  // suspect: the pace of questions
  double penalty_ = 0;                  // at penalty_at_
  Instant penalty_at_{};
};

}  // namespace pullman::failover
