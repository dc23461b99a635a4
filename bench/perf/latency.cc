// Ping-pong: the client sends a message, the server sends one back.
#include "patterns.h"
#include "payload.h"

namespace perf {

namespace {

// One side's buffers and requests.
struct Side {
  explicit Side(const Job& job) : out(job.size), in(job.size) {}

  std::vector<std::byte> out;
  std::vector<std::byte> in;
  pullman::Request sending;
  pullman::Request receiving;
};

void post(Session& session, const Job& job, Side& side) {
  session.context().receive(session.peer(), data_tag(job.run), 0, side.in, side.receiving);
}

void send(Session& session, const Job& job, Side& side) {
  session.context().send(session.peer(), data_tag(job.run), side.out, side.sending);
}

bool wrong(const Job& job, const Side& side, const PayloadKey& key) {
  return side.receiving.length() != job.size || (job.check && !holds(side.in, key));
}

}  // namespace

Outcome measure_latency(Session& session, const Job& job) {
  Side side(job);
  Outcome outcome;
  Stop stop(job);
  std::uint64_t trips = 0;
  const Clock::time_point start = Clock::now();
  for (; !stop.reached(trips); ++trips) {
    if (job.check) fill(side.out, {job.run, trips, false});
    post(session, job, side);

    const Clock::time_point sent = Clock::now();
    send(session, job, side);
    session.finish(side.receiving);
    outcome.half_round_trips.add((Clock::now() - sent) / 2);

    session.finish(side.sending);
    if (wrong(job, side, {job.run, trips, true})) ++outcome.errors;
  }
  outcome.elapsed = Clock::now() - start;
  outcome.messages = 2 * trips;
  session.say(Word::kEnd, {{"sent", trips}});
  return outcome;
}

Outcome serve_latency(Session& session, const Job& job) {
  Side side(job);
  Outcome outcome;
  pullman::Request end;
  std::vector<std::byte> end_buffer;
  session.listen(Word::kEnd, end, end_buffer);
  post(session, job, side);
  session.say(Word::kReady);
  for (std::uint64_t trips = 0;; ++trips) {
    // The last word matches after every ping, so once it is here no ping is under way.
    while (!side.receiving.done() && !end.done()) session.turn(false);
    if (!side.receiving.done()) break;
    session.expect_ok(side.receiving);
    if (wrong(job, side, {job.run, trips, false})) ++outcome.errors;
    if (job.check) fill(side.out, {job.run, trips, true});
    session.finish(side.sending);
    send(session, job, side);
    post(session, job, side);
  }
  session.context().cancel(side.receiving);
  session.finish(side.sending);
  session.expect_ok(end);
  return outcome;
}

}  // namespace perf
