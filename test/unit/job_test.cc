// What processes say of a job, and what follows from it: world/question, summary and counters, and
// pullman-stat's verdict.
#include <catch2/catch.hpp>
#include <random>

#include "stat/inquiry.h"
#include "stat/verdict.h"
#include "stat/wait_graph.h"
#include "world/counters.h"
#include "world/current_call.h"
#include "world/question.h"
#include "world/summary.h"

namespace stat_program {
namespace {

using pullman::Instant;
using pullman::world::Age;
using pullman::world::AllCounters;
using pullman::world::Answer;
using pullman::world::Bytes;
using pullman::world::kNoRank;
using pullman::world::kWaitsForMessage;
using pullman::world::Question;
using pullman::world::RankSet;
using pullman::world::Summary;
using std::chrono::seconds;
namespace telemetry = pullman::telemetry;
namespace world = pullman::world;

Summary full_summary() {
  Summary out;
  out.rank = 3;
  out.size = 9;
  out.process = 4711;
  out.host = "node7";
  out.has_thread = true;
  out.in_call = seconds(2);
  out.program_ago = seconds(3);
  out.collective = {.name = "barrier", .rank = 2, .since = seconds(4)};
  out.waits.resize(world::kMaxWaits, {.rank = 1,
                                      .address = std::string(300, 'a'),
                                      .what = std::string(300, 'w'),
                                      .since = seconds(5)});
  out.rails.resize(world::kMaxRails, {.rank = 1,
                                      .nic = std::string(300, 'n'),
                                      .remote = std::string(300, 'r'),
                                      .state = std::string(300, 's'),
                                      .reason = std::string(300, 'y')});
  out.warnings = 8;
  out.warning = std::string(500, 'z');
  return out;
}

// A job in which all ranks answer, have a thread, and call.
Job job_of(unsigned size) {
  Job job{.size = size};
  for (unsigned rank = 0; rank < size; ++rank) {
    Summary& summary = job.answers[rank];
    summary.rank = rank;
    summary.size = size;
    summary.has_thread = true;
    summary.program_ago = Age(0);
  }
  return job;
}

void add_wait(Job& job, unsigned from, unsigned to, std::string_view what, Age since) {
  job.answers.at(from).waits.push_back(
      {.rank = to, .address = "10.0.0.1:7100", .what = std::string(what), .since = since});
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a summary is read as it was written, and is never longer than it may be") {
  const Bytes bytes = encode(full_summary());
  CHECK(bytes.size() <= world::kMaxSummaryBytes);
  const auto read = world::decode_summary(bytes);
  REQUIRE(read);
  CHECK(read->rank == 3);
  CHECK(read->in_call == Age(seconds(2)));
  CHECK(read->program_ago == Age(seconds(3)));
  CHECK(read->collective->rank == 2);
  CHECK(read->waits.size() == world::kMaxWaits);
  CHECK(read->waits.back().since == seconds(5));
  CHECK(read->rails.back().state.size() < 300);
  CHECK(read->warnings == 8);
  CHECK(encode(*read) == bytes);
}

TEST_CASE("a summary that is cut, too long, of another version or of no rank is refused") {
  const Bytes whole = encode(full_summary());
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    CHECK_FALSE(world::decode_summary(std::span(whole).first(bytes)));
  }
  Bytes longer = whole;
  longer.push_back(std::byte{0});
  CHECK_FALSE(world::decode_summary(longer));
  Bytes other = whole;
  other[0] = std::byte{2};
  CHECK_FALSE(world::decode_summary(other));
  Summary beyond = full_summary();
  beyond.rank = beyond.size;
  CHECK_FALSE(world::decode_summary(encode(beyond)));
}

TEST_CASE("a summary of a world that is too large to be asked is refused") {
  const auto size = GENERATE(world::kMaxAskedSize + 1, 0xF0000000U, 0xFFFFFFFFU);
  Summary summary = full_summary();
  summary.size = size;
  CHECK_FALSE(world::decode_summary(encode(summary)));
  summary.size = world::kMaxAskedSize;
  CHECK(world::decode_summary(encode(summary)));
}

TEST_CASE("a summary in which anything is of a rank that the world has not is refused") {
  Summary summary = full_summary();
  std::uint32_t* const ranks[] = {&summary.collective->rank, &summary.waits.back().rank,
                                  &summary.rails.back().rank};
  for (std::uint32_t* const rank : ranks) {
    const std::uint32_t valid = *rank;
    *rank = summary.size;
    CHECK_FALSE(world::decode_summary(encode(summary)));
    *rank = kNoRank;
    CHECK(world::decode_summary(encode(summary)));
    *rank = valid;
  }
}

TEST_CASE("a set of ranks has a bit for each, of as many as a number can say") {
  CHECK(RankSet::bytes_for(0) == 0);
  CHECK(RankSet::bytes_for(8) == 1);
  CHECK(RankSet::bytes_for(9) == 2);
  CHECK(RankSet::bytes_for(0xFFFFFFFF) == 0x20000000);
}

TEST_CASE("hostile bytes are read or refused, and what is read can be written") {
  std::mt19937 random(17);
  const Bytes whole = encode(full_summary());
  for (int i = 0; i < 20000; ++i) {
    Bytes bytes = whole;
    for (int k = 0; k < 4; ++k) bytes[random() % bytes.size()] = std::byte(random());
    if (const auto read = world::decode_summary(bytes)) {
      CHECK(read->rank < read->size);
      CHECK(encode(*read).size() <= world::kMaxSummaryBytes);
    }
    Bytes noise(random() % 40);
    for (std::byte& byte : noise) byte = std::byte(random() % 3);
    if (const auto read = world::decode_question(noise)) CHECK(encode(*read) == noise);
    if (const auto read = world::decode_answer(noise)) CHECK(encode(*read) == noise);
    AllCounters counters;
    CHECK_FALSE(world::decode(noise, 4, counters));
  }
}

TEST_CASE("a question has the ranks that were asked, of a world that is not too large") {
  Question question{.number = 5, .rank = 2, .asked = RankSet(11)};
  question.asked.insert(10);
  const Bytes bytes = encode(question);
  const auto read = world::decode_question(bytes);
  REQUIRE(read);
  CHECK(read->number == 5);
  CHECK(read->rank == 2);
  CHECK(read->asked.contains(10));
  CHECK_FALSE(read->asked.contains(9));
  CHECK_FALSE(read->asked.contains(11));
  CHECK_FALSE(world::decode_question(std::span(bytes).first(bytes.size() - 1)));
  const Question large{.asked = RankSet(world::kMaxAskedSize + 1)};
  CHECK_FALSE(world::decode_question(encode(large)));
}

TEST_CASE("rows become what a process waits for, the longest first, and rails that are not up") {
  telemetry::Rows rows;
  const Instant now{seconds(100)};
  const auto at = [&](int ago) { return telemetry::clock_count(now - seconds(ago)); };
  rows.peers = {{.peer = 0, .address = {"a:1"}},
                {.peer = 1, .address = {"b:1"}, .waits_for = {"ACKs"}, .waits_since = at(2)},
                {.peer = 2, .address = {"c:1"}, .receives_posted = 1, .receives_since = at(7)},
                {.peer = 9, .address = {"d:1"}, .phase = {"gone"}, .why = {"closed"}}};
  rows.rails = {{.peer = 0, .nic = {"eth0"}, .state = {"up"}},
                {.peer = 0, .nic = {"eth1"}, .state = {"down"}, .since = at(4)},
                {.peer = 1, .nic = {"eth0"}, .state = {"up"}}};
  const auto rank_of = [](std::uint64_t index, std::uint64_t) {
    return index == 9 ? kNoRank : static_cast<std::uint32_t>(index + 10);
  };
  Summary summary;
  describe(rows, {.at = now, .call_begun = now - seconds(3), .attended_at = Instant::min()},
           rank_of, summary);

  CHECK(summary.in_call == Age(seconds(3)));
  CHECK_FALSE(summary.program_ago);
  REQUIRE(summary.waits.size() == 2);
  CHECK(summary.waits[0].rank == 12);
  CHECK(summary.waits[0].what == kWaitsForMessage);
  CHECK(summary.waits[0].since == seconds(7));
  CHECK(summary.waits[1].rank == 11);
  REQUIRE(summary.rails.size() == 2);
  CHECK(summary.rails[0].nic == "eth1");
  CHECK(summary.rails[0].since == seconds(4));
  CHECK(summary.rails[1].rank == 11);
}

TEST_CASE("what is waited for is named before the many that have ended, however long ago") {
  telemetry::Rows rows;
  const Instant now{seconds(100)};
  for (std::uint64_t peer = 0; peer < 2 * world::kMaxWaits; ++peer) {
    rows.peers.push_back({.peer = peer,
                          .address = {std::to_string(peer)},
                          .phase = {"gone"},
                          .why = {"peer closed"},
                          .heard_at = telemetry::clock_count(now - seconds(90))});
    rows.rails.push_back({.peer = peer, .state = {"up"}});
  }
  rows.peers.push_back({.peer = 40,
                        .address = {"40"},
                        .waits_for = {"ACKs"},
                        .waits_since = telemetry::clock_count(now - seconds(2))});
  rows.rails.push_back({.peer = 40, .state = {"up"}});
  const auto rank_of = [](std::uint64_t index, std::uint64_t) {
    return static_cast<std::uint32_t>(index);
  };
  Summary summary;
  describe(rows, {.at = now, .call_begun = std::nullopt}, rank_of, summary);
  REQUIRE(summary.waits.size() == world::kMaxWaits);
  CHECK(summary.waits.front().rank == 40);
  CHECK(summary.waits.back().what == "gone: peer closed");
  REQUIRE(summary.rails.size() == 1);
  CHECK(summary.rails.front().rank == 40);
}

TEST_CASE("in a job that goes on nothing is stuck") {
  Job job = job_of(4);
  add_wait(job, 0, 1, "ACKs", std::chrono::milliseconds(200));
  CHECK(find_stuck(job).empty());
}

TEST_CASE("a rank whose program makes no calls is named with those that wait for it") {
  Job job = job_of(4);
  job.answers[2].program_ago = seconds(12);
  add_wait(job, 0, 2, telemetry::waits::kReceive, seconds(11));
  add_wait(job, 3, 2, kWaitsForMessage, seconds(10));
  add_wait(job, 2, 3, kWaitsForMessage, seconds(10));  // it does not call, so this is not why
  const auto stuck = find_stuck(job);
  REQUIRE(stuck.size() == 1);
  CHECK(stuck[0].by == StuckBy::kProgram);
  CHECK(stuck[0].rank == 2);
  CHECK(stuck[0].since == seconds(12));
  CHECK(stuck[0].waiting == std::vector<unsigned>{0, 3});
  CHECK(contains(stuck[0].sentence, "ranks 0 and 3 wait for its message and its receive"));
}

TEST_CASE("a rank that does not answer is named, with what others and this host say of it") {
  Job job = job_of(4);
  job.answers.erase(2);
  job.answers.erase(3);
  job.answers[0].collective = {.name = "barrier", .rank = 2, .since = seconds(6)};
  job.hints[2] = "process 17 is stopped";
  add_wait(job, 1, 3, "gone: peer died", seconds(0));
  const auto stuck = find_stuck(job);
  REQUIRE(stuck.size() == 2);
  CHECK(stuck[0].by == StuckBy::kSilent);
  CHECK(stuck[0].rank == 2);
  CHECK(contains(stuck[0].sentence, "process 17 is stopped"));
  CHECK(contains(stuck[0].sentence, "rank 0 waits for its part of a barrier, for 6.0 s"));
  CHECK(stuck[1].by == StuckBy::kGone);
  CHECK(contains(stuck[1].sentence, "gone: peer died"));
}

TEST_CASE("who waits for a rank that waits for another is not the cause") {
  Job job = job_of(4);
  add_wait(job, 0, 1, kWaitsForMessage, seconds(5));
  add_wait(job, 1, 2, kWaitsForMessage, seconds(6));
  const auto stuck = find_stuck(job);
  REQUIRE(stuck.size() == 1);
  CHECK(stuck[0].by == StuckBy::kCall);
  CHECK(stuck[0].rank == 2);
}

TEST_CASE("ranks that wait for each other are named as such") {
  Job job = job_of(5);
  add_wait(job, 0, 1, kWaitsForMessage, seconds(5));
  add_wait(job, 1, 2, kWaitsForMessage, seconds(6));
  add_wait(job, 2, 1, kWaitsForMessage, seconds(7));
  const auto stuck = find_stuck(job);
  REQUIRE(stuck.size() == 1);
  CHECK(stuck[0].by == StuckBy::kCycle);
  CHECK(stuck[0].waiting == std::vector<unsigned>{1, 2});
  CHECK(contains(stuck[0].sentence, "ranks 1 and 2 wait for each other, for 6.0 s"));
}

TEST_CASE("a rank that has ended as it should is stuck only if it is waited for") {
  Job job = job_of(4);
  job.answers.erase(3);
  add_wait(job, 1, 3, "gone: peer closed", seconds(50));
  add_wait(job, 0, 3, "gone: closed", seconds(50));  // it has ended its connection itself
  CHECK(find_stuck(job).empty());
  CHECK(ended_ranks(job) == std::vector<unsigned>{3});

  add_wait(job, 2, 3, kWaitsForMessage, seconds(5));
  const auto stuck = find_stuck(job);
  REQUIRE(stuck.size() == 1);
  CHECK(stuck[0].by == StuckBy::kGone);
  CHECK(stuck[0].waiting == std::vector<unsigned>{2});
}

TEST_CASE("a rank that anybody says has died has not ended as it should") {
  Job job = job_of(4);
  job.answers.erase(3);
  const bool is_first = GENERATE(true, false);
  add_wait(job, is_first ? 0 : 1, 3, "gone: peer died", seconds(5));
  add_wait(job, is_first ? 1 : 0, 3, "gone: peer closed", seconds(5));
  const auto stuck = find_stuck(job);
  REQUIRE(stuck.size() == 1);
  CHECK(contains(stuck[0].sentence, "gone: peer died"));
  CHECK(ended_ranks(job).empty());
}

TEST_CASE("a cycle is named beside what is stuck without anything to do with it") {
  Job job = job_of(8);
  add_wait(job, 1, 2, kWaitsForMessage, seconds(5));
  add_wait(job, 2, 1, kWaitsForMessage, seconds(6));
  add_wait(job, 3, 4, kWaitsForMessage, seconds(7));
  add_wait(job, 4, 3, kWaitsForMessage, seconds(8));
  add_wait(job, 6, 4, kWaitsForMessage, seconds(8));
  job.answers.erase(5);
  const bool is_dead = GENERATE(true, false);
  add_wait(job, 0, 5, is_dead ? "gone: peer died" : "gone: peer closed", seconds(50));
  const auto stuck = find_stuck(job);
  REQUIRE(stuck.size() == (is_dead ? 3 : 2));
  CHECK(stuck[0].by == StuckBy::kCycle);
  CHECK(stuck[0].waiting == std::vector<unsigned>{1, 2});
  CHECK(stuck[1].by == StuckBy::kCycle);
  CHECK(stuck[1].waiting == std::vector<unsigned>{3, 4});
  if (is_dead) CHECK(stuck[2].rank == 5);
}

TEST_CASE("a cycle of ranks that wait for a cause, too, is no cause") {
  Job job = job_of(4);
  add_wait(job, 0, 1, kWaitsForMessage, seconds(5));
  add_wait(job, 1, 0, kWaitsForMessage, seconds(6));
  add_wait(job, 1, 2, "ACKs", seconds(4));
  const auto stuck = find_stuck(job);
  REQUIRE(stuck.size() == 1);
  CHECK(stuck[0].by == StuckBy::kCall);
  CHECK(stuck[0].rank == 2);
}

TEST_CASE("in a job of 20000 ranks each wait is in two lists, and no rank looks at others'") {
  constexpr unsigned kRanks = 20000;
  Job job = job_of(kRanks);
  for (unsigned rank = 0; rank < kRanks; ++rank) {
    if (rank + 2 < kRanks) add_wait(job, rank, rank + 1, kWaitsForMessage, seconds(5));
    if (rank != 7 && rank + 1 < kRanks) add_wait(job, rank, 7, "ACKs", seconds(9));
  }
  const WaitGraph graph(job);
  std::size_t from = 0;
  std::size_t to = 0;
  bool are_theirs = true;
  for (unsigned rank = 0; rank < kRanks; ++rank) {
    from += graph.from(rank).size();
    to += graph.to(rank).size();
    for (const auto* edge : graph.from(rank)) are_theirs = are_theirs && edge->from == rank;
    for (const auto* edge : graph.to(rank)) are_theirs = are_theirs && edge->to == rank;
  }
  CHECK(from == 2 * kRanks - 4);
  CHECK(to == from);
  CHECK(are_theirs);
  CHECK(graph.to(7).size() == kRanks - 1);

  const auto stuck = find_stuck(job);  // from 7 a chain comes back to 7
  REQUIRE(stuck.size() == 1);
  CHECK(stuck[0].by == StuckBy::kCycle);
  CHECK(stuck[0].waiting == std::vector<unsigned>{7, 8});
}

TEST_CASE("a job is asked until all have answered, and once more if that tells of no wait") {
  Inquiry inquiry;
  Inquiry::Time now{};
  const Job job = job_of(3);
  const auto answer = [&](unsigned rank) { inquiry.note_answer(job.answers.at(rank), now); };
  const auto first = inquiry.next_question(now);
  REQUIRE(first);
  CHECK(first->size() == 0);
  CHECK_FALSE(inquiry.next_question(now));
  answer(0);
  answer(2);

  now += seconds(1);
  const auto repeated = inquiry.next_question(now);
  REQUIRE(repeated);
  CHECK(repeated->contains(0));
  CHECK_FALSE(repeated->contains(1));
  answer(1);
  CHECK_FALSE(inquiry.is_over());
  CHECK_FALSE(inquiry.is_settled());
  CHECK_FALSE(inquiry.next_question(now));

  now += seconds(2);
  const auto second = inquiry.next_question(now);
  REQUIRE(second);
  CHECK_FALSE(second->contains(0));
  for (const unsigned rank : {0, 1, 2}) {
    CHECK_FALSE(inquiry.is_over());
    answer(rank);
  }
  CHECK(inquiry.is_over());
  CHECK(inquiry.is_settled());
  CHECK_FALSE(inquiry.next_question(now + seconds(9)));
}

TEST_CASE("a job that tells at once who waits for whom is not asked again") {
  Inquiry inquiry;
  Job job = job_of(2);
  add_wait(job, 0, 1, kWaitsForMessage, seconds(5));
  const Inquiry::Time now{};
  CHECK(inquiry.next_question(now));
  for (const auto& [rank, summary] : job.answers) inquiry.note_answer(summary, now);
  CHECK(inquiry.is_over());
  CHECK_FALSE(inquiry.next_question(now + seconds(9)));
}

TEST_CASE("those that have not answered the second time keep it from being known") {
  Inquiry inquiry;
  Inquiry::Time now{};
  const Job job = job_of(3);
  for (const unsigned rank : {0, 1}) inquiry.note_answer(job.answers.at(rank), now);
  now += seconds(2);
  REQUIRE(inquiry.next_question(now));
  inquiry.note_answer(job.answers.at(0), now);
  CHECK_FALSE(inquiry.is_settled());
  inquiry.note_answer(job.answers.at(1), now);
  CHECK(inquiry.is_settled());
  CHECK_FALSE(inquiry.is_over());
  CHECK(silent_ranks(inquiry.job()) == std::vector<unsigned>{2});
}

TEST_CASE("a call names a rank only while it waits for it") {
  world::CurrentCall current;
  CHECK_FALSE(current.get());
  const world::CurrentCall::Noted noted(current, "barrier");
  CHECK(current.get()->rank == kNoRank);
  {
    const world::CurrentCall::Waiting waiting(current, 4);
    CHECK(current.get()->rank == 4);
  }
  CHECK(current.get()->rank == kNoRank);
}

TEST_CASE("a rail that is not up is named with its end, its state and since when") {
  Job job = job_of(2);
  job.answers[1].rails.push_back({.rank = 0,
                                  .nic = "eth1",
                                  .remote = "10.0.0.1:7100",
                                  .state = "down",
                                  .reason = "the NIC has no link",
                                  .since = seconds(9)});
  const auto stuck = find_stuck(job);
  REQUIRE(stuck.size() == 1);
  CHECK(stuck[0].by == StuckBy::kRail);
  CHECK(stuck[0].sentence ==
        "rail eth1 of rank 1 to rank 0 (10.0.0.1:7100) is down for 9.0 s: the NIC has no link; 0 "
        "packets lost");
}

TEST_CASE("counters of all ranks are one page, with who had the least and the most") {
  AllCounters all;
  for (unsigned rank = 0; rank < 4; ++rank) {
    telemetry::Rows rows;
    rows.context.stats.messages_sent = 10 + 5 * rank;
    const Bytes letter = world::encode(AllCounters{{rank, world::counters_of(rows)}});
    REQUIRE(world::decode(letter, 4, all));
    CHECK_FALSE(world::decode(letter, rank, all));
    CHECK_FALSE(world::decode(std::span(letter).first(letter.size() - 1), 4, all));
  }
  const std::string page =
      world::to_table({.size = 5, .duration = seconds(3), .counters = std::move(all)});
  CHECK(contains(page, ": 5 ranks, 3.0 s; without rank 4: gone, or"));
  CHECK(contains(page,
                 "  messages_sent                           10      0              15"
                 "              25      3                70\n"));
  CHECK_FALSE(contains(page, "retransmits"));
}

}  // namespace stat_program
