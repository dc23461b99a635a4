// Floods: packets as fast as they go, counted and timed where they arrive. What the receiver cannot
// take is lost, and does not count.
#include <algorithm>
#include <thread>

#include "raw_patterns.h"

namespace perf {

namespace {

constexpr std::chrono::milliseconds kQuiet{20};  // without a packet: the flood is over

// Packets sent or taken between two looks at something else.
std::size_t at_once(const RawNic& nic) {
  return std::max<std::size_t>(8, nic.packets_per_burst());
}

// Counts what arrives between the first packet and the last.
class Sink {
 public:
  Sink(RawNic& nic, const RawPackets& packets) : nic_(nic), packets_(packets) {}

  // Takes at most a few packets. The clock is read at the first packet and whenever the flood
  // pauses, not per packet.
  void pump() {
    std::span<const std::byte> packet;
    for (std::size_t i = 0; i < at_once(nic_); ++i) {
      if (!nic_.receive(packet)) {
        if (moving_) last_ = Clock::now();
        moving_ = false;
        if (++idle_ % kRawPollsBeforeYield == 0) std::this_thread::yield();
        return;
      }
      if (count_ == 0) first_ = last_ = Clock::now();
      ++count_;
      bytes_ += packet.size();
      if (!packets_.right(packet)) ++wrong_;
      moving_ = true;
    }
  }

  void pump_until_quiet() {
    const Clock::time_point bound = Clock::now() + std::chrono::seconds(1);
    Clock::time_point now = Clock::now();
    Clock::time_point quiet_since = now;
    while (now < bound && now - quiet_since < kQuiet) {
      const std::uint64_t before = count_;
      pump();
      now = Clock::now();
      if (count_ != before) quiet_since = now;
    }
  }

  std::uint64_t count() const { return count_; }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t wrong() const { return wrong_; }
  std::chrono::nanoseconds elapsed() const { return last_ - first_; }

 private:
  RawNic& nic_;
  const RawPackets& packets_;
  std::uint64_t count_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t wrong_ = 0;
  bool moving_ = false;     // the last poll brought something
  std::uint32_t idle_ = 0;  // polls that brought nothing
  Clock::time_point first_;
  Clock::time_point last_;
};

// What arrived of `packets` sent, in messages.
void account(const Job& job, const RawPackets& cut, const Sink& sink, std::uint64_t packets,
             Outcome& outcome) {
  const std::size_t size = std::max<std::size_t>(1, job.size);
  outcome.messages += sink.bytes() / size;
  outcome.elapsed = std::max(outcome.elapsed, sink.elapsed());
  const std::uint64_t lost = packets - std::min(packets, sink.count());
  outcome.errors += sink.wrong() + (lost + cut.per_message() - 1) / cut.per_message();
}

}  // namespace

Outcome measure_raw_flood(RawEnds ends, const Job& job) {
  RawPackets packets(ends.nic, job);
  Sink sink(ends.nic, packets);
  const bool both_ways = job.test == Test::kBidirectional;
  Stop stop(job);
  std::uint64_t sent = 0;
  while (!stop.reached(sent / packets.per_message())) {
    const std::uint64_t messages = sent / packets.per_message();
    const std::uint64_t left = stop.messages_left(messages) * packets.per_message();
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(at_once(ends.nic), left); ++i) {
      packets.send(0, sent++);
      if (!both_ways || sent % ends.nic.packets_per_burst() != 0) continue;
      packets.flush();
      sink.pump();
    }
    packets.flush();
  }
  ends.control.say({{"end", true}, {"sent", sent}});
  if (both_ways) sink.pump_until_quiet();
  const nlohmann::json server = ends.control.hear();
  Outcome outcome;
  if (both_ways) account(job, packets, sink, server.value("sent", std::uint64_t{0}), outcome);
  outcome.messages += server.value("messages", std::uint64_t{0});
  outcome.errors += server.value("errors", std::uint64_t{0});
  outcome.elapsed = std::max(outcome.elapsed,
                             std::chrono::nanoseconds(server.value("elapsed_ns", std::int64_t{0})));
  return outcome;
}

Outcome serve_raw_flood(RawEnds ends, const Job& job) {
  RawPackets packets(ends.nic, job);
  Sink sink(ends.nic, packets);
  const bool both_ways = job.test == Test::kBidirectional;
  ends.control.say({{"ready", true}});
  std::uint64_t sent = 0;
  std::uint64_t announced = 0;
  std::uint64_t heard_count = 0;
  Clock::time_point heard = Clock::now();
  for (std::uint32_t turns = 1;; ++turns) {
    sink.pump();
    if (both_ways) {
      for (std::size_t i = 0; i < ends.nic.packets_per_burst(); ++i) packets.send(0, sent++);
      packets.flush();
    }
    if (turns % kRawPollsPerLook != 0) continue;
    const auto word = ends.control.poll();
    if (word && word->contains("end")) {
      announced = word->value("sent", std::uint64_t{0});
      break;
    }
    const Clock::time_point now = Clock::now();
    if (sink.count() != heard_count) heard = now;
    heard_count = sink.count();
    if (now - heard > std::chrono::duration<double>(ends.patience_s)) {
      throw Failure("the client: sends nothing any more");
    }
  }
  sink.pump_until_quiet();
  Outcome outcome;
  account(job, packets, sink, announced, outcome);
  ends.control.say({{"messages", outcome.messages},
                    {"errors", outcome.errors},
                    {"elapsed_ns", outcome.elapsed.count()},
                    {"sent", sent}});
  return outcome;
}

}  // namespace perf
