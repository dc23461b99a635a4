// failover/health.h: when a rail goes down, and when it comes back up.
#include "failover/health.h"

#include <catch2/catch.hpp>

namespace pullman::failover {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Health::Pace kPace{.rtt = microseconds(100), .timeout = microseconds(400)};

struct Rail {
  Rail() { health.begin_up(now); }

  void pass(Duration time) { now += time; }
  // Lets time pass until something is due; returns whether a probe is to be sent.
  bool until_due() {
    now = std::max(now, health.next_due());
    return health.handle_due(now, kPace);
  }
  // Answers each probe until the rail is up or `most` were sent. Returns how many were.
  int answer_questions(int most = 100) {
    int asked = 0;
    while (!health.up() && asked < most) {
      if (!until_due()) continue;
      ++asked;
      const Instant sent_at = now;
      pass(microseconds(100));
      health.handle_answer(now, sent_at, kPace);
    }
    return asked;
  }
  // Silence, probes without answers, and another rail as a witness that the peer is alive.
  void die() {
    health.handle_silence(now, kPace);
    health.handle_witness(now, {now});
    for (int i = 0; i < 4; ++i) until_due();
    for (int witness = 0; witness < 3; ++witness) {
      pass(microseconds(10));
      health.handle_witness(now, {now});
      until_due();
    }
  }

  Health health;
  Instant now{std::chrono::seconds(100)};
};

TEST_CASE("silence alone makes a rail suspect, not down") {
  Rail rail;
  CHECK(rail.health.handle_silence(rail.now, kPace));
  for (int i = 0; i < 1000; ++i) CHECK(rail.until_due());
  CHECK(rail.health.state() == RailState::kSuspect);
  CHECK(rail.health.usable());
}

TEST_CASE("an answer clears a suspect rail at once") {
  Rail rail;
  rail.health.handle_silence(rail.now, kPace);
  CHECK(rail.health.handle_answer(rail.now, rail.now, kPace));
  CHECK(rail.health.up());
  CHECK(rail.health.next_due() == kNever);
}

TEST_CASE("a peer that answered late the last time is given that long to answer probes") {
  Rail rail;
  CHECK_FALSE(rail.health.is_patient(microseconds(1)));
  rail.health.handle_silence(rail.now, kPace, milliseconds(15));
  rail.pass(milliseconds(25));
  rail.health.handle_answer(rail.now, rail.now, kPace);
  CHECK(rail.health.is_patient(milliseconds(39)));
  CHECK_FALSE(rail.health.is_patient(milliseconds(40)));

  rail.health.handle_silence(rail.now, kPace, microseconds(400));
  rail.pass(microseconds(100));
  rail.health.handle_answer(rail.now, rail.now, kPace);
  CHECK_FALSE(rail.health.is_patient(microseconds(500)));  // the last answer came soon

  rail.health.handle_silence(rail.now, kPace, microseconds(400));
  rail.pass(std::chrono::seconds(30));  // a network outage
  rail.health.handle_answer(rail.now, rail.now, kPace);
  CHECK_FALSE(rail.health.is_patient(std::chrono::seconds(2)));
}

TEST_CASE("a silent rail goes down when another rail's later probes are answered") {
  Rail rail;
  rail.health.handle_silence(rail.now, kPace);
  const Instant before = rail.now - microseconds(1);
  rail.pass(microseconds(100));
  CHECK_FALSE(rail.health.handle_witness(rail.now, {before}));    // sent before the silence began
  CHECK(rail.health.handle_witness(rail.now, {rail.now}));        // the peer is alive
  CHECK_FALSE(rail.health.handle_witness(rail.now, {rail.now}));  // the rail has had too few probes
  rail.until_due();
  rail.until_due();
  // The peer may have stopped when it had read this rail, and when it had answered on another.
  for (int confirmation = 0; confirmation < 2; ++confirmation) {
    const Instant last_probe = rail.now;
    rail.pass(microseconds(100));
    CHECK(rail.health.handle_witness(rail.now, {rail.now}));
    CHECK(rail.until_due());
    CHECK(rail.health.state() == RailState::kSuspect);
    CHECK_FALSE(rail.health.handle_witness(rail.now, {rail.now}));  // sent before that was read
    rail.pass(microseconds(100));
    CHECK_FALSE(rail.health.handle_witness(rail.now, {last_probe}));
  }
  CHECK(rail.health.handle_witness(rail.now, {rail.now}));
  CHECK(rail.health.state() == RailState::kSuspect);
  CHECK_FALSE(rail.until_due());
  CHECK(rail.health.state() == RailState::kDown);
  CHECK(rail.health.reason() == RailReason::kSilent);
  CHECK_FALSE(rail.health.usable());
}

TEST_CASE("when a peer silent on all rails answers on one, the others have time to answer, too") {
  Rail rail;
  rail.health.handle_silence(rail.now, kPace);
  for (int i = 0; i < 20; ++i) rail.until_due();

  CHECK(rail.health.handle_witness(rail.now, {rail.now}));
  CHECK(rail.until_due());
  CHECK(rail.health.state() == RailState::kSuspect);
  CHECK(rail.health.next_due() - rail.now < milliseconds(1));  // and are probed at the first pace
}

TEST_CASE("a rail whose answer is read right after the witness' stays up") {
  Rail rail;
  rail.health.handle_silence(rail.now, kPace);
  rail.health.handle_witness(rail.now, {rail.now});
  for (int i = 0; i < 4; ++i) rail.until_due();
  for (int i = 0; i < 3; ++i) {
    rail.pass(microseconds(10));
    CHECK(rail.health.handle_witness(rail.now, {rail.now}));
  }
  CHECK(rail.health.next_due() > rail.now);  // no verdict in the turn of the last witness
  CHECK(rail.health.handle_answer(rail.now, rail.now, kPace));
  CHECK(rail.health.up());
  CHECK(rail.health.next_due() == kNever);
}

TEST_CASE("a rail on which packets still arrive has more time to answer") {
  Rail rail;
  const Instant start = rail.now;
  rail.health.handle_silence(rail.now, kPace);
  rail.health.handle_witness(rail.now, {rail.now});
  while (rail.now - start < milliseconds(25)) {
    CHECK_FALSE(rail.health.handle_witness(rail.now, {rail.now, rail.now}));
    CHECK(rail.until_due());
  }
  CHECK(rail.health.handle_witness(rail.now, {rail.now, rail.now}));
}

TEST_CASE("a rail between crowded hosts has more time to answer") {
  Rail rail;
  const Instant start = rail.now;
  rail.health.handle_silence(rail.now, kPace);
  const auto witness = [&] { return Health::Witness{.sent_at = rail.now, .crowded = true}; };
  rail.health.handle_witness(rail.now, witness());
  while (rail.now - start < milliseconds(25)) {
    CHECK_FALSE(rail.health.handle_witness(rail.now, witness()));
    CHECK(rail.until_due());
  }
  CHECK(rail.health.handle_witness(rail.now, witness()));
}

TEST_CASE("the last packet that arrived on a rail before it died gains it no time") {
  Rail rail;
  const Instant start = rail.now;
  rail.health.handle_silence(rail.now, kPace);
  const Instant heard_last = rail.now;
  rail.health.handle_witness(rail.now, {rail.now});
  while (!rail.health.handle_witness(rail.now, {rail.now, heard_last})) {
    REQUIRE(rail.now - start < milliseconds(10));
    rail.until_due();
  }
}

TEST_CASE("a suspect rail is probed every two round trips, whatever its packets' timeout is") {
  Rail rail;
  rail.health.handle_silence(rail.now, {.rtt = microseconds(800), .timeout = milliseconds(9)});
  CHECK(rail.health.next_due() - rail.now == microseconds(1600));
  Rail unmeasured;
  unmeasured.health.handle_silence(unmeasured.now, {.rtt = {}, .timeout = milliseconds(2)});
  CHECK(unmeasured.health.next_due() - unmeasured.now == milliseconds(2));
}

TEST_CASE("a silent peer is probed ever more seldom, but five times a second at least") {
  Rail rail;
  rail.health.handle_silence(rail.now, kPace);
  for (int i = 0; i < 100; ++i) rail.until_due();
  const Instant before = rail.now;
  rail.until_due();
  CHECK(rail.now - before == milliseconds(200));
}

TEST_CASE(
    "an answer to an earlier probe counts, one to a probe from before the rail went down does "
    "not") {
  Rail rail;
  const Instant before = rail.now;
  rail.die();
  rail.until_due();
  const Instant first = rail.now;
  rail.until_due();
  rail.health.handle_answer(rail.now, before, kPace);
  CHECK(rail.health.state() == RailState::kDown);

  CHECK(rail.health.handle_answer(rail.now, first, kPace));

  CHECK(rail.health.state() == RailState::kProbing);
}

TEST_CASE("a rail that is down is probed with growing pauses, but five times a second at least") {
  Rail rail;
  rail.die();
  CHECK(rail.until_due());
  CHECK(rail.until_due());  // the first probe had time to be answered late
  Instant last = rail.now;
  Duration pause{};
  for (int i = 0; i < 50; ++i) {
    REQUIRE(rail.until_due());
    CHECK(rail.now - last >= pause);
    pause = rail.now - last;
    CHECK(pause <= milliseconds(200));
    last = rail.now;
  }
  CHECK(pause == milliseconds(200));
  CHECK(rail.health.state() == RailState::kDown);
}

TEST_CASE(
    "three answers in a row bring a rail up, and a miss between them starts the count again") {
  Rail rail;
  rail.die();
  CHECK(rail.answer_questions(2) == 2);
  CHECK(rail.health.state() == RailState::kProbing);
  rail.until_due();  // unanswered
  rail.until_due();
  CHECK(rail.health.state() == RailState::kDown);
  CHECK(rail.answer_questions() == 3);
  CHECK(rail.health.reason() == RailReason::kAnswers);
}

TEST_CASE("a rail says since when it is in its state") {
  Rail rail;
  rail.die();
  CHECK(rail.health.since() == rail.now);
  rail.answer_questions(1);
  REQUIRE(rail.health.state() == RailState::kProbing);
  CHECK(rail.health.since() == rail.now);
}

// A peer that polls seldom answers all probes since with one ACK, and the link times the youngest
// of them: its timeout is shorter than the peer's poll interval.
TEST_CASE("a rail whose peer polls less often than its timeout comes up all the same") {
  const auto apart = milliseconds(GENERATE(8, 48, 150, 250, 1000));
  const Health::Pace pace{.rtt = apart / 8, .timeout = apart / 2};
  Rail rail;
  rail.die();
  Instant look = rail.now + milliseconds(300);  // dead until then
  Instant youngest = rail.now;
  for (int looks = 0; !rail.health.up();) {
    if (rail.health.next_due() < look) {
      rail.now = rail.health.next_due();
      if (rail.health.handle_due(rail.now, pace)) youngest = rail.now;
      continue;
    }
    REQUIRE(++looks < 20);
    rail.now = look;
    look += apart;
    rail.health.handle_answer(rail.now, youngest, pace);
  }
}

TEST_CASE("an answer to a probe from before the rail went down does not count") {
  Rail rail;
  const Instant before = rail.now;
  rail.die();
  CHECK_FALSE(rail.health.handle_answer(rail.now, before, kPace));
  rail.until_due();
  CHECK_FALSE(rail.health.handle_answer(rail.now, before, kPace));
  CHECK(rail.health.state() == RailState::kDown);
}

TEST_CASE("a rail that lost some packets needs many answers in a row") {
  Rail rail;
  rail.health.leave(rail.now, RailReason::kLossy);
  CHECK(rail.answer_questions() == 20);
}

TEST_CASE("if no other rail is up one answer is enough, whatever the rail did before") {
  Rail rail;
  for (int i = 0; i < 4; ++i) {
    rail.health.leave(rail.now, RailReason::kLossy);
    rail.until_due();
    CHECK(rail.health.handle_answer(rail.now, rail.now, kPace, true));
    CHECK(rail.health.up());
  }
}

TEST_CASE("a rail that is wanted at once is probed at once, however long the pause was") {
  Rail rail;
  rail.die();
  for (int i = 0; i < 12; ++i) rail.until_due();
  rail.health.ask_at_once(rail.now);
  CHECK(rail.health.next_due() == rail.now);
}

TEST_CASE("a new rail is used after one answer") {
  Rail rail;
  rail.health = Health();
  rail.health.begin(rail.now);
  CHECK(rail.health.reason() == RailReason::kNew);
  CHECK(rail.answer_questions() == 1);
}

TEST_CASE("answers over a rail are believed before its NIC, whose link events may be late") {
  Rail rail;
  CHECK(rail.health.leave(rail.now, RailReason::kLinkDown));
  rail.answer_questions();
  CHECK(rail.health.up());
}

TEST_CASE("a rail whose NIC has its link back is probed when both ends had time to settle") {
  Rail rail;
  CHECK(rail.health.leave(rail.now, RailReason::kLinkDown));
  rail.until_due();
  rail.until_due();
  CHECK_FALSE(rail.health.usable());
  rail.pass(milliseconds(500));
  CHECK(rail.health.allow(rail.now));
  CHECK(rail.health.next_due() > rail.now + milliseconds(1));
  CHECK(rail.health.next_due() < rail.now + milliseconds(5));
  rail.answer_questions();
  CHECK(rail.health.up());
}

TEST_CASE("a drained rail is not probed until it is allowed again") {
  Rail rail;
  CHECK(rail.health.leave(rail.now, RailReason::kOperator));
  CHECK(rail.health.state() == RailState::kDrained);
  CHECK(rail.health.next_due() == kNever);
  CHECK_FALSE(rail.health.handle_answer(rail.now, rail.now, kPace));
  rail.health.allow(rail.now);
  rail.answer_questions();
  CHECK(rail.health.up());
}

TEST_CASE("a rail that flaps is kept out after the third time, for some two seconds at most") {
  Rail rail;
  int times_up = 0;
  const Instant begin = rail.now;
  // Ten times a second for ten seconds: half of the time it answers.
  while (rail.now - begin < std::chrono::seconds(10)) {
    const bool answers = (rail.now - begin) % milliseconds(100) < milliseconds(50);
    if (rail.health.up()) {
      ++times_up;
      while ((rail.now - begin) % milliseconds(100) < milliseconds(50)) rail.pass(milliseconds(1));
      rail.die();
    } else if (rail.until_due() && answers) {
      rail.health.handle_answer(rail.now, rail.now, kPace);
    }
  }
  CHECK(times_up >= 3);
  CHECK(times_up <= 16);  // of a hundred
}

// Takes the rail down for silence, and answers its first probe after `time`.
void be_late(Rail& rail, Duration time) {
  rail.die();
  REQUIRE_FALSE(rail.health.usable());
  REQUIRE(rail.until_due());
  const Instant sent_at = rail.now;
  rail.pass(time);
  while (rail.health.next_due() <= rail.now) rail.health.handle_due(rail.now, kPace);
  rail.health.handle_answer(rail.now, sent_at, kPace);
}

TEST_CASE("a rail that was left for silence and answers all probes was late, and gets no penalty") {
  Rail rail;
  for (int i = 0; i < 10; ++i) {
    be_late(rail, milliseconds(19));
    CHECK(rail.answer_questions(2) == 2);
    REQUIRE(rail.health.up());
  }
  CHECK(rail.health.penalty(rail.now) < 0.01);
}

TEST_CASE("a rail that answers its first probe too late, or not the next one, gets its penalty") {
  const bool first_is_late = GENERATE(false, true);
  Rail rail;
  for (int i = 0; i < 3; ++i) {
    be_late(rail, first_is_late ? milliseconds(21) : microseconds(100));
    REQUIRE(rail.until_due());  // not answered
    rail.answer_questions(3);
  }
  CHECK_FALSE(rail.health.up());
  CHECK(rail.health.penalty(rail.now) > 2.5);
}

TEST_CASE("a rail that is cut for 10 of 20 ms flaps, and is kept out") {
  Rail rail;
  int times_up = 0;
  const Instant begin = rail.now;
  const auto answers = [&] { return (rail.now - begin) % milliseconds(20) < milliseconds(10); };
  while (rail.now - begin < std::chrono::seconds(10)) {
    if (rail.health.up()) {
      ++times_up;
      while (answers()) rail.pass(microseconds(500));
      rail.die();
    } else if (rail.until_due() && answers()) {
      rail.health.handle_answer(rail.now, rail.now, kPace);
    }
  }
  CHECK(times_up >= 3);
  CHECK(times_up <= 16);  // of five hundred
}

TEST_CASE("a rail that the peer left is penalised unless it was left for silence") {
  const bool silent = GENERATE(false, true);
  Rail rail;
  for (int i = 0; i < 3; ++i) {
    rail.health.leave(rail.now, silent ? RailReason::kSilentThere : RailReason::kTold);
    rail.answer_questions(3);
  }
  CHECK(rail.health.up() == silent);
  CHECK((rail.health.penalty(rail.now) < 0.01) == silent);
}

TEST_CASE("a rail that was late, and whose link was lost meanwhile, gets its penalty") {
  const bool link_is_lost = GENERATE(false, true);
  Rail rail;
  rail.die();
  if (link_is_lost) {
    rail.health.leave(rail.now, RailReason::kLinkDown);
    rail.health.handle_link_up(rail.now);
  }
  rail.answer_questions(3);
  REQUIRE(rail.health.up());
  CHECK((rail.health.penalty(rail.now) > 0.9) == link_is_lost);
}

TEST_CASE(
    "a rail that is kept out for flapping stays out although it was only late the last time") {
  Rail rail;
  for (int i = 0; i < 3; ++i) {
    rail.health.leave(rail.now, RailReason::kLossy);
    rail.until_due();
    rail.health.handle_answer(rail.now, rail.now, kPace, true);  // no other rail is up
    REQUIRE(rail.health.up());
  }
  be_late(rail, milliseconds(5));
  rail.answer_questions(3);
  CHECK_FALSE(rail.health.up());
  CHECK(rail.health.penalty(rail.now) < 3);
}

TEST_CASE("rails cut once a second are up again within a second each time") {
  Rail rail;
  for (int i = 0; i < 20; ++i) {
    rail.pass(milliseconds(500));
    rail.die();
    const Instant mended = rail.now + milliseconds(400);
    while (rail.now < mended) rail.until_due();
    rail.answer_questions(1000);
    CHECK(rail.health.up());
    CHECK(rail.now - mended < milliseconds(1000));
  }
}

TEST_CASE("a rail that is kept out is not probed until it is allowed, and says why it went down") {
  Rail rail;
  rail.health.leave(rail.now, RailReason::kLinkDown);
  rail.health.keep_out(rail.now);
  CHECK(rail.health.state() == RailState::kDrained);
  CHECK(rail.health.reason() == RailReason::kLinkDown);

  CHECK_FALSE(rail.health.handle_link_up(rail.now));
  rail.health.ask_at_once(rail.now);
  rail.health.handle_unresolved(rail.now);
  CHECK_FALSE(rail.health.leave(rail.now, RailReason::kTold));
  CHECK_FALSE(rail.health.handle_answer(rail.now, rail.now, kPace, true));
  CHECK(rail.health.state() == RailState::kDrained);
  CHECK(rail.health.next_due() == kNever);

  rail.health.allow(rail.now);
  CHECK(rail.answer_questions() > 0);
  CHECK(rail.health.up());
}

TEST_CASE("a link that comes up allows a rail that went down with it, not one that is drained") {
  Rail rail;
  rail.health.leave(rail.now, RailReason::kLinkDown);
  CHECK(rail.health.handle_link_up(rail.now));
  CHECK(rail.health.next_due() != kNever);
  rail.health.leave(rail.now, RailReason::kOperator);
  rail.health.leave(rail.now, RailReason::kLinkDown);

  CHECK_FALSE(rail.health.handle_link_up(rail.now));

  CHECK(rail.health.state() == RailState::kDrained);
  CHECK(rail.health.next_due() == kNever);
}

}  // namespace
}  // namespace pullman::failover
