#include "failover.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "payload.h"
#include "stream.h"

namespace perf {

namespace {

using std::chrono::nanoseconds;

constexpr int kClockTrips = 32;
// After the last word, in case something comes a second time.
constexpr std::chrono::milliseconds kAftermath{100};
// From a cut on: when goodput is to be back. A pause that begins later is not the cut's gap: it may
// be the machine's, which at times runs nobody for milliseconds.
constexpr std::chrono::milliseconds kRecovered{50};

void write_message(std::span<std::byte> bytes, std::uint64_t run, std::uint64_t number) {
  std::memcpy(bytes.data(), &number, sizeof number);
  fill(bytes.subspan(sizeof number), {run, number, false});
}

void note_message(Roll& roll, std::span<const std::byte> bytes, std::uint64_t run) {
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data(), sizeof number);
  if (!holds(bytes.subspan(sizeof number), {run, number, false})) return roll.note_corrupted();
  roll.note(number);
}

std::int64_t since_epoch(Clock::time_point time) {
  return nanoseconds(time.time_since_epoch()).count();
}

void answer_clock(Session& session) {
  for (int i = 0; i < kClockTrips; ++i) {
    session.hear(Word::kClock);
    session.say(Word::kClock, {{"ns", since_epoch(Clock::now())}});
  }
}

// Receives posted in every slot, each message noted as it comes.
class Receiver {
 public:
  Receiver(Session& session, const Job& job) : session_(session), job_(job), slots_(job) {
    for (std::size_t slot = 0; slot < slots_.count(); ++slot) post(slot);
    session_.listen(Word::kEnd, end_, end_buffer_);
  }

  std::size_t pump(Buckets& buckets) {
    std::size_t count = 0;
    for (; count < slots_.count() && slots_.request(received_).done(); ++count) {
      last_ = Clock::now();
      pullman::Request& request = slots_.request(received_);
      session_.expect_ok(request);
      buckets.add(last_, request.length());
      if (request.length() == job_.size) {
        note_message(roll_, slots_.buffer(received_), job_.run);
      } else {
        roll_.note_corrupted();
      }
      post(received_ + slots_.count());
      ++received_;
    }
    return count;
  }

  // How many were sent, once it is known.
  std::optional<std::uint64_t> sent() {
    if (!sent_ && end_.done()) {
      sent_ = session_.heard(end_, end_buffer_).value("sent", std::uint64_t{0});
    }
    return sent_;
  }

  void cancel() {
    for (std::size_t slot = 0; slot < slots_.count(); ++slot) {
      session_.context().cancel(slots_.request(slot));
    }
    // A message that was already on its way into one of them ends as it may.
    for (std::size_t slot = 0; slot < slots_.count(); ++slot) {
      while (!slots_.request(slot).done()) session_.turn(false);
    }
  }

  std::uint64_t received() const { return received_; }
  Clock::time_point last() const { return last_; }
  const Roll& roll() const { return roll_; }

 private:
  void post(std::uint64_t number) {
    session_.context().receive(session_.peer(), data_tag(job_.run), 0, slots_.buffer(number),
                               slots_.request(number));
  }

  Session& session_;
  const Job& job_;
  Slots slots_;
  Roll roll_;
  std::uint64_t received_ = 0;
  Clock::time_point last_{};
  std::optional<std::uint64_t> sent_;
  pullman::Request end_;
  std::vector<std::byte> end_buffer_;
};

void receive_all(Session& session, Receiver& receiver, Buckets& buckets) {
  while (!receiver.sent()) session.turn(receiver.pump(buckets) != 0);
  // What has arrived may be far more than was received so far.
  Clock::time_point end = Clock::now() + kAftermath;
  while (Clock::now() < end) {
    const bool moved = receiver.pump(buckets) != 0;
    if (moved) end = Clock::now() + kAftermath;
    session.turn(moved);
  }
  receiver.cancel();
}

}  // namespace

Outcome serve_failover(Session& session, const Job& job) {
  if (job.size < kLeastFailoverBytes)
    session.close_abortively("asked for messages that are too short");
  Receiver receiver(session, job);
  session.say(Word::kReady);
  answer_clock(session);
  const nlohmann::json word = session.hear(Word::kStart);
  const Clock::time_point start{nanoseconds(word.value("at_ns", since_epoch(Clock::now())))};
  Buckets buckets(start);
  receive_all(session, receiver, buckets);

  const Roll& roll = receiver.roll();
  Outcome outcome;
  outcome.messages = receiver.received();
  outcome.elapsed = std::max(nanoseconds(0), nanoseconds(receiver.last() - start));
  outcome.more = {{"lost", roll.lost(*receiver.sent())},
                  {"duplicated", roll.duplicated()},
                  {"misordered", roll.misordered()},
                  {"corrupted", roll.corrupted()},
                  {"buckets", buckets.all().size()}};
  outcome.more["rails"] = nlohmann::ordered_json::array();
  for (const auto& rail : session.context().rails(session.peer())) {
    outcome.more["rails"].push_back(to_json(rail));
  }
  const std::span<const std::byte> bytes = std::as_bytes(buckets.all());
  outcome.series.assign(bytes.begin(), bytes.end());
  return outcome;
}

// The exchange that took least time says most: its error is at most half of that.
void Failover::compare_clocks(Session& session) {
  nanoseconds best = nanoseconds::max();
  for (int i = 0; i < kClockTrips; ++i) {
    const Clock::time_point asked = Clock::now();
    session.say(Word::kClock);
    const nanoseconds theirs(session.hear(Word::kClock).value("ns", std::int64_t{0}));
    const Clock::time_point answered = Clock::now();
    if (answered - asked >= best) continue;
    best = answered - asked;
    server_ahead_ = theirs - (asked + best / 2).time_since_epoch();
  }
  clock_error_ = best / 2;
}

Outcome Failover::measure(Session& session, const Job& job) {
  compare_clocks(session);
  result_.start = Clock::now();
  session.say(Word::kStart, {{"at_ns", since_epoch(result_.start + server_ahead_)}});

  Outcome outcome;
  watch_.emplace(session.context(), session.peer(), options_.watch_every);
  watch_->start(result_.start);
  Cutter cutter(parse_cuts(options_.cuts), result_.start);
  stream(session, job, outcome);
  for (CutDone& done : cutter.done()) result_.cuts.push_back({.done = std::move(done)});
  return outcome;
}

void Failover::stream(Session& session, const Job& job, Outcome& outcome) {
  Slots slots(job);
  Stop stop(job);
  std::uint64_t sent = 0;
  while (!stop.reached(sent)) {
    const std::uint64_t before = sent;
    for (std::size_t i = 0; i < 64 && slots.request(sent).done() && stop.messages_left(sent) > 0;
         ++i, ++sent) {
      session.expect_ok(slots.request(sent));
      write_message(slots.buffer(sent), job.run, sent);
      session.context().send(session.peer(), data_tag(job.run), slots.buffer(sent),
                             slots.request(sent));
    }
    session.turn(sent != before);
    watch_->look(Clock::now());
  }
  for (std::size_t slot = 0; slot < slots.count(); ++slot) {
    while (!slots.request(slot).done()) {
      session.turn(false);
      watch_->look(Clock::now());
    }
    session.expect_ok(slots.request(slot));
  }
  const Clock::time_point now = Clock::now();
  watch_->stop(now);
  outcome.elapsed = now - result_.start;
  outcome.messages = sent;
  session.say(Word::kEnd, {{"sent", sent}});
}

void Failover::take_series(Session& session, const nlohmann::json& server) {
  const auto count = server.value("buckets", std::size_t{0});
  if (count > kMaxBuckets) session.close_abortively("counted for longer than this can have lasted");
  result_.arrived.resize(count);
  if (count == 0) return;
  pullman::Request request;
  session.context().receive(session.peer(), tag_of(Word::kSeries), 0,
                            std::as_writable_bytes(std::span(result_.arrived)), request);
  session.finish(request);
}

void Failover::conclude(Session& session, const nlohmann::json& server, Outcome& outcome) {
  take_series(session, server);
  result_.elapsed = outcome.elapsed;
  for (CutResult& cut : result_.cuts) cut = judge(cut.done);
  for (const char* key : {"lost", "duplicated", "misordered", "corrupted"}) {
    outcome.errors += server.value(key, std::uint64_t{0});
  }
  outcome.more = failover_json(result_, *watch_, server);
  outcome.more["sent_twice"] = outcome.retransmits + outcome.evacuated;
  outcome.more["clocks_differ_by_us"] = static_cast<double>(clock_error_.count()) / 1e3;
  outcome.text = failover_text(outcome.more, *watch_);
  if (!options_.output.empty()) write_failover(options_.output, result_, *watch_);
}

CutResult Failover::judge(const CutDone& done) const {
  CutResult result{.done = done};
  if (!done.made) return result;
  const Clock::time_point over = result_.start + result_.elapsed;
  const Clock::time_point mended = done.mended ? done.mended->begin : over;
  const Clock::time_point recovered = done.made->end + kRecovered;
  result.gap = longest_gap(done.made->begin, std::min(mended, recovered));
  if (mended > recovered) result.later_gap = longest_gap(recovered, mended);
  if (mended - recovered >= 2 * kBucket) result.after_mb_per_s = mb_per_s(recovered, mended);
  for (const pullman::RailView& rail : watch_->rails()) {
    if (rail.nic != done.cut.nic) continue;
    if (const auto left = watch_->first_left(rail.number, done.made->begin);
        left && *left < mended) {
      result.left = *left - done.made->begin;
    }
    if (!done.mended) continue;
    if (const auto again = watch_->first_sent(rail.number, done.mended->begin)) {
      result.reinstated = *again - done.mended->begin;
    }
  }
  return result;
}

// The longest gap that began in this time, or before it and ended later than it begins.
nanoseconds Failover::longest_gap(Clock::time_point from, Clock::time_point to) const {
  nanoseconds longest{0};
  for (std::size_t i = 0; i < result_.arrived.size(); ++i) {
    const Bucket& bucket = result_.arrived[i];
    const Clock::time_point ended =
        result_.start + i * kBucket + std::chrono::microseconds(bucket.gap_end_us);
    if (ended < from) continue;
    if (ended - std::chrono::microseconds(bucket.gap_us) > to) break;
    longest = std::max<nanoseconds>(longest, std::chrono::microseconds(bucket.gap_us));
  }
  return longest;
}

double Failover::mb_per_s(Clock::time_point from, Clock::time_point to) const {
  const auto index = [&](Clock::time_point time) {
    const auto at = std::max(Clock::duration(0), time - result_.start) / kBucket;
    return std::min<std::size_t>(static_cast<std::size_t>(at), result_.arrived.size());
  };
  const std::size_t first = index(from) + 1, past = index(to);
  if (past <= first) return 0;
  std::uint64_t bytes = 0;
  for (std::size_t i = first; i < past; ++i) bytes += result_.arrived[i].bytes;
  const double seconds = std::chrono::duration<double>(kBucket).count();
  return static_cast<double>(bytes) / 1e6 / (static_cast<double>(past - first) * seconds);
}

}  // namespace perf
