// Streams: bandwidth (client to server), bidirectional (both ways at once) and rate (a window of
// messages, then a word from the receiver).
#include <algorithm>
#include <optional>

#include "patterns.h"
#include "stream.h"

namespace perf {

namespace {

// Sends until the run is over, receiving meanwhile if there is something to receive.
void send_all(Session& session, const Job& job, StreamSender& sender, StreamReceiver* receiver) {
  Stop stop(job);
  while (!stop.reached(sender.sent())) {
    std::uint64_t moved =
        sender.pump(std::min<std::uint64_t>(64, stop.messages_left(sender.sent())));
    if (receiver != nullptr) moved += receiver->pump();
    session.turn(moved != 0);
  }
}

// Rate: after each window the receiver's word.
void send_windows(Session& session, const Job& job, StreamSender& sender) {
  Stop stop(job);
  pullman::Request word;
  std::vector<std::byte> buffer;
  while (!stop.reached(sender.sent())) {
    const std::uint64_t window =
        std::min<std::uint64_t>(job.window, stop.messages_left(sender.sent()));
    const std::uint64_t target = sender.sent() + window;
    if (window == job.window) session.listen(Word::kWindow, word, buffer);
    while (sender.sent() < target) {
      const std::uint64_t moved = sender.pump(target - sender.sent());
      if (sender.sent() < target) session.turn(moved != 0);
    }
    session.finish(word);
  }
}

// Until the sender has ended and all is here.
void receive_all(Session& session, StreamReceiver& receiver) {
  do {
    session.turn(receiver.pump() != 0);
  } while (!receiver.complete());
  receiver.cancel();
}

void receive_windows(Session& session, const Job& job, StreamReceiver& receiver) {
  pullman::Request word;
  std::uint64_t words = 0;
  do {
    const std::uint64_t moved = receiver.pump();
    if (receiver.received() / job.window > words) {
      session.finish(word);
      session.context().send(session.peer(), tag_of(Word::kWindow), {}, word);
      ++words;
    }
    session.turn(moved != 0);
  } while (!receiver.complete());
  session.finish(word);
  receiver.cancel();
}

}  // namespace

Outcome measure_flow(Session& session, const Job& job) {
  StreamSender sender(session, job, false);
  std::optional<StreamReceiver> receiver;
  if (job.test == Test::kBidirectional) receiver.emplace(session, job, true);

  const Clock::time_point start = Clock::now();
  if (job.test == Test::kRate) {
    send_windows(session, job, sender);
  } else {
    send_all(session, job, sender, receiver ? &*receiver : nullptr);
  }
  Outcome outcome;
  outcome.elapsed = Clock::now() - start;
  outcome.messages = sender.sent();
  session.say(Word::kEnd, {{"sent", sender.sent()}});
  if (receiver) {
    receive_all(session, *receiver);
    outcome.elapsed = Clock::now() - start;
    outcome.messages = receiver->received();
    outcome.errors = receiver->errors();
  }
  sender.finish();
  return outcome;
}

Outcome serve_flow(Session& session, const Job& job) {
  StreamReceiver receiver(session, job, false);
  std::optional<StreamSender> sender;
  if (job.test == Test::kBidirectional) sender.emplace(session, job, true);

  session.say(Word::kReady);
  const Clock::time_point start = Clock::now();
  if (sender) {
    while (!receiver.complete()) {
      session.turn(receiver.pump() + sender->pump(64) != 0);
    }
    session.say(Word::kEnd, {{"sent", sender->sent()}});
    receiver.cancel();
  } else if (job.test == Test::kRate) {
    receive_windows(session, job, receiver);
  } else {
    receive_all(session, receiver);
  }
  Outcome outcome;
  outcome.elapsed = Clock::now() - start;
  outcome.messages = receiver.received();
  outcome.errors = receiver.errors();
  if (sender) sender->finish();
  return outcome;
}

}  // namespace perf
