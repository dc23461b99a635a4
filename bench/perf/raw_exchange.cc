// Rounds: the client sends the packets of one round and waits for the answer. In latency a round is
// one message and so is the answer; in rate a round is a window of messages and the answer one
// packet.
#include <algorithm>
#include <thread>

#include "raw_patterns.h"

namespace perf {

namespace {

constexpr int kMaxLostInARow = 100;

// Collects the packets of one round, in spite of losses: the last one completes it.
class Round {
 public:
  Round(const RawPackets& packets, std::uint64_t total, bool labelled)
      : packets_(packets), total_(total), labelled_(labelled) {}

  // Returns true when the packet completes the round.
  bool take(std::span<const std::byte> packet) {
    if (labelled_) {
      const RawPackets::Label label = RawPackets::label_of(packet);
      if (label.round != round_) begin(label.round);
      position_ = std::uint64_t{label.index} + 1;
    } else {
      ++position_;
    }
    ++received_;
    if (position_ < total_) return false;
    lost_ += total_ - std::min(total_, received_);
    position_ = received_ = 0;
    return true;
  }

  void begin(std::uint32_t round) {
    round_ = round;
    position_ = received_ = 0;
  }

  // Whether a packet belongs to this round, as far as it can say.
  bool mine(std::span<const std::byte> packet) const {
    return !labelled_ || RawPackets::label_of(packet).round == round_;
  }

  std::uint32_t round() const { return round_; }
  // Messages of completed rounds that arrived incomplete.
  std::uint64_t lost() const {
    return (lost_ + packets_.per_message() - 1) / packets_.per_message();
  }

 private:
  const RawPackets& packets_;
  std::uint64_t total_;
  bool labelled_;
  std::uint32_t round_ = 0;
  std::uint64_t position_ = 0;  // how far into the round
  std::uint64_t received_ = 0;  // packets of it
  std::uint64_t lost_ = 0;      // packets of completed rounds
};

std::uint64_t round_messages(const Job& job) {
  return job.test == Test::kRate ? job.window : 1;
}

// An answer later than this is lost: 20 ms, and time for the bytes at 10 MB/s.
std::chrono::nanoseconds patience_for(const Job& job) {
  return std::chrono::milliseconds(20) +
         std::chrono::nanoseconds(100 * job.size * round_messages(job));
}

class Client {
 public:
  Client(RawEnds ends, const Job& job)
      : ends_(ends),
        job_(job),
        packets_(ends.nic, job),
        total_(packets_.per_message() * round_messages(job)),
        answer_(packets_, job.test == Test::kRate ? 1 : packets_.per_message(),
                packets_.labelled()) {}

  // One round there and back. Returns false if it was lost.
  bool round(Outcome& outcome) {
    answer_.begin(++number_);
    const Clock::time_point sent = Clock::now();
    for (std::uint64_t index = 0; index < total_; ++index) packets_.send(number_, index);
    packets_.flush();
    if (!answered(outcome)) return resynchronise(outcome);
    if (job_.test == Test::kLatency) outcome.half_round_trips.add((Clock::now() - sent) / 2);
    lost_in_a_row_ = 0;
    return true;
  }

  std::uint64_t lost() const { return answer_.lost(); }

 private:
  bool answered(Outcome& outcome) {
    Clock::time_point deadline{};
    std::span<const std::byte> packet;
    for (std::uint32_t polls = 1;; ++polls) {
      if (ends_.nic.receive(packet)) {
        if (!answer_.mine(packet)) continue;
        if (job_.test == Test::kLatency && !packets_.right(packet)) ++outcome.errors;
        if (answer_.take(packet)) return true;
      } else if (polls % kRawPollsBeforeYield == 0) {
        std::this_thread::yield();
        if (polls % 1024 != 0) continue;
        const Clock::time_point now = Clock::now();
        if (deadline == Clock::time_point{}) deadline = now + patience_for(job_);
        if (now > deadline) return false;
      }
    }
  }

  // After a loss both ends forget what is under way.
  bool resynchronise(Outcome& outcome) {
    outcome.errors += round_messages(job_);
    if (++lost_in_a_row_ > kMaxLostInARow) {
      throw Failure("datagrams do not get through: is UDP filtered between the two?");
    }
    ends_.control.say({{"resync", true}});
    ends_.control.hear();
    ends_.nic.drain();
    return false;
  }

  RawEnds ends_;
  const Job& job_;
  RawPackets packets_;
  std::uint64_t total_;
  Round answer_;
  std::uint32_t number_ = 0;
  int lost_in_a_row_ = 0;
};

}  // namespace

Outcome measure_raw_exchange(RawEnds ends, const Job& job) {
  Client client(ends, job);
  Outcome outcome;
  Stop stop(job);
  const std::uint64_t step = round_messages(job);
  std::uint64_t done = 0;
  const Clock::time_point start = Clock::now();
  for (std::uint64_t tried = 0; !stop.reached(tried); tried += step) {
    if (client.round(outcome)) done += step;
  }
  outcome.elapsed = Clock::now() - start;
  outcome.messages = job.test == Test::kLatency ? 2 * done : done;
  outcome.errors += client.lost();
  ends.control.say({{"end", true}});
  return outcome;
}

Outcome serve_raw_exchange(RawEnds ends, const Job& job) {
  RawPackets packets(ends.nic, job);
  Round round(packets, packets.per_message() * round_messages(job), packets.labelled());
  Outcome outcome;
  ends.control.say({{"ready", true}});
  std::span<const std::byte> packet;
  std::uint32_t polls = 0;
  Clock::time_point heard = Clock::now();
  for (;;) {
    if (ends.nic.receive(packet)) {
      polls = 0;
      if (!packets.right(packet)) ++outcome.errors;
      if (!round.take(packet)) continue;
      if (job.test == Test::kRate) packets.send_word(round.round());
      for (std::uint64_t i = 0; job.test == Test::kLatency && i < packets.per_message(); ++i) {
        packets.send(round.round(), i);
      }
      packets.flush();
    } else if (++polls % kRawPollsBeforeYield == 0) {
      std::this_thread::yield();
      if (polls % kRawPollsPerLook != 0) continue;
      const Clock::time_point now = Clock::now();
      if (polls == kRawPollsPerLook) heard = now;
      const auto word = ends.control.poll();
      if (word && word->contains("end")) break;
      if (word && word->contains("resync")) {
        ends.nic.drain();
        round.begin(0);
        ends.control.say({{"resynced", true}});
      }
      if (now - heard > std::chrono::duration<double>(ends.patience_s)) {
        throw Failure("the client: sends nothing any more");
      }
    }
  }
  outcome.errors += round.lost();
  return outcome;
}

}  // namespace perf
