#include "patterns.h"

#include <fmt/format.h>

#include <thread>

namespace peers {

namespace {

using perf::Clock;
using perf::Job;
using perf::Outcome;
using perf::Stop;
using perf::Test;

constexpr std::uint32_t kPollsBeforeYield = 128;  // as --raw does
constexpr std::uint32_t kPollsPerLook = 256;      // at the clock and the control connection

// Turns of a carrier that bring nothing: yields now and then, and ends when patience does.
class Waiting {
 public:
  explicit Waiting(const Ends& ends) : ends_(ends) {}

  // One turn. Returns true once in a while, when it is time to look at other things.
  bool turn() {
    const std::uint64_t before = ends_.carrier.received();
    ends_.carrier.progress();
    if (ends_.carrier.received() != before) {
      idle_ = 0;
      return false;
    }
    if (++idle_ % kPollsBeforeYield == 0) std::this_thread::yield();
    if (idle_ % kPollsPerLook != 0) return false;
    look();
    return true;
  }

 private:
  void look() {
    const Clock::time_point now = Clock::now();
    if (idle_ == kPollsPerLook) since_ = now;
    if (now - since_ > std::chrono::duration<double>(ends_.patience_s)) {
      throw perf::Failure(fmt::format("nothing has moved for {} s", ends_.patience_s));
    }
  }

  const Ends& ends_;
  std::uint32_t idle_ = 0;
  Clock::time_point since_;
};

void send(const Ends& ends, std::size_t bytes) {
  Waiting waiting(ends);
  while (!ends.carrier.send(bytes)) waiting.turn();
  ends.carrier.flush();
}

void wait_for(const Ends& ends, std::uint64_t received) {
  Waiting waiting(ends);
  while (ends.carrier.received() < received) waiting.turn();
}

void finish_sends(const Ends& ends) {
  Waiting waiting(ends);
  for (ends.carrier.flush(); !ends.carrier.idle(); ends.carrier.flush()) waiting.turn();
}

std::uint64_t measure_latency(const Ends& ends, const Job& job, Outcome& outcome) {
  Stop stop(job);
  std::uint64_t trips = 0;
  std::uint64_t answers = ends.carrier.received();
  for (; !stop.reached(trips); ++trips) {
    const Clock::time_point sent = Clock::now();
    send(ends, job.size);
    wait_for(ends, ++answers);
    outcome.half_round_trips.add((Clock::now() - sent) / 2);
    finish_sends(ends);
  }
  outcome.messages = 2 * trips;
  return trips;
}

std::uint64_t measure_stream(const Ends& ends, const Job& job) {
  Stop stop(job);
  Waiting waiting(ends);
  std::uint64_t sent = 0;
  while (!stop.reached(sent)) {
    if (ends.carrier.has_room(job.window) && ends.carrier.send(job.size)) {
      ++sent;
    } else {
      waiting.turn();
    }
  }
  finish_sends(ends);
  return sent;
}

// A window of messages, then a word from the receiver, and again.
std::uint64_t measure_rate(const Ends& ends, const Job& job, Outcome& outcome) {
  Stop stop(job);
  std::uint64_t words = ends.carrier.received();
  while (!stop.reached(outcome.messages)) {
    Waiting waiting(ends);
    for (std::size_t i = 0; i < job.window;) {
      if (ends.carrier.has_room(job.window) && ends.carrier.send(job.size)) {
        ++i;
      } else {
        waiting.turn();
      }
    }
    ends.carrier.flush();
    wait_for(ends, ++words);
    outcome.messages += job.window;
  }
  return outcome.messages;
}

}  // namespace

Outcome measure(Ends ends, const Job& job) {
  ends.control.say(to_json(job));
  ends.control.hear();
  Outcome outcome;
  std::uint64_t sent = 0;
  const Clock::time_point start = Clock::now();
  switch (job.test) {
    case Test::kLatency:
      sent = measure_latency(ends, job, outcome);
      break;
    case Test::kRate:
      sent = measure_rate(ends, job, outcome);
      break;
    case Test::kBandwidth:
      sent = measure_stream(ends, job);
      break;
    case Test::kBidirectional:
    case Test::kFailover:
      throw perf::Failure("only latency, rate and streams one way are measured here");
  }
  outcome.elapsed = Clock::now() - start;
  ends.control.say({{"end", true}, {"sent", sent}});

  // While the receiver waits for what is under way, this end may have to move it.
  Waiting waiting(ends);
  std::optional<nlohmann::json> result;
  while (!result) {
    if (waiting.turn()) result = ends.control.poll();
  }
  if (job.test == Test::kBandwidth) {
    outcome.messages = sent;
    outcome.elapsed = std::chrono::nanoseconds(result->value("elapsed_ns", std::int64_t{0}));
  }
  return outcome;
}

void serve(Ends ends, const Job& job) {
  const std::uint64_t before = ends.carrier.received();
  std::uint64_t answered = 0;
  std::uint64_t expected = ~std::uint64_t{0};
  const std::uint64_t per_answer = job.test == Test::kLatency ? 1 : job.window;
  const std::size_t answer_bytes = job.test == Test::kLatency ? job.size : 0;

  ends.control.say({{"ready", true}});
  const Clock::time_point start = Clock::now();
  Clock::time_point last = start;
  Waiting waiting(ends);
  for (;;) {
    const bool look = waiting.turn();
    const std::uint64_t received = ends.carrier.received() - before;
    if (job.test != Test::kBandwidth && received >= (answered + 1) * per_answer) {
      send(ends, answer_bytes);
      ++answered;
    }
    if (received >= expected) break;
    if (!look || expected != ~std::uint64_t{0}) continue;
    last = Clock::now();
    const auto word = ends.control.poll();
    if (word) expected = word->value("sent", std::uint64_t{0});
    if (received >= expected) break;
  }
  finish_sends(ends);
  ends.control.say({{"elapsed_ns", (Clock::now() - start).count()}});
}

}  // namespace peers
