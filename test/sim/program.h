// A host's program: it calls the API at random, as its plan says, and hands every result to the
// ledger.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/random.h"
#include "message/multi_receive.h"
#include "sim/allowed_failures.h"
#include "sim/bad_heads.h"
#include "sim/ledger.h"
#include "sim/node.h"
#include "sim/plan.h"
#include "sim/remote_work.h"
#include "sim/trace.h"

namespace pullman::sim {

class Program {
 public:
  // What all programs of a run share.
  struct Shared {
    Ledger& ledger;
    AllowedFailures& excuses;
    Findings& findings;  // what counts in any run
    Trace& trace;
    std::vector<nic::Address> addresses;  // of all hosts
    Homes homes;
    bool may_be_relayed = false;  // links are cut to which the relay is another way
  };

  Program(Shared& shared, Node& node, const ProgramPlan& plan, std::uint64_t bad_heads,
          std::uint64_t seed);

  // The node has run: takes what is finished, and does the next operations if it is time.
  void run();

  bool has_work_left() const { return operations_left_ != 0; }
  // Stops the random operations and receives whatever comes.
  void finish();
  std::size_t pending_sends() const;
  std::size_t pending() const { return pending_.size() + work_.pending() + bad_heads_.pending(); }
  // Another process begins.
  void booted() { work_.booted(); }
  // The peers it knows.
  std::vector<PeerId> handles() const;
  // Takes back all receives that nothing has matched.
  void cancel_receives();

  // It stopped, and receives whatever comes again.
  void receive_again();
  // A message to each it is connected to that may be on `host`.
  void say_last(std::uint8_t host);

  // The process is about to close: no new operation.
  void stop() { stopped_ = true; }
  // The process has ended: every request has to be done. The next one starts afresh.
  void ended();

 private:
  enum class Mode : std::uint8_t { kRandom, kFinishing };
  // In low and high ones the wire says a space differently.
  static constexpr std::array<std::uint8_t, 5> kDrawnSpaces{0, 1, 3, 4, kSpaces - 1};

  struct Operation {
    enum class Kind : std::uint8_t { kSend, kReceive };
    Request request;
    std::unique_ptr<std::byte[]> buffer;
    std::size_t allocated = 0;
    Kind kind = Kind::kSend;
    MessageName name;      // send
    std::size_t size = 0;  // send
    Wanted wanted;         // receive
    SendOptions options;   // send
    bool cancelled = false;
    bool must_match = false;                                 // probe() promised a message for it
    std::unique_ptr<MultiReceive> many;                      // a receive that takes many messages:
    std::vector<std::pair<std::size_t, std::size_t>> parts;  // where they lie, and how many bytes
    bool part_failed = false;

    Request& posted() {
      return many == nullptr ? request : MultiReceive::State::of(*many).posted();
    }
    bool done() const { return many == nullptr ? request.done() : many->idle(); }
  };
  struct Known {
    PeerId id;
    std::optional<std::uint8_t> host;
    bool met = false;  // has been connected
  };

  void accept();
  void note_meetings();
  bool has_met(PeerId peer) const;
  void reap();
  void finished(Operation& operation);
  void finished_receive(Operation& operation);
  void check_failure(Operation& operation);
  void check_parts(Operation& operation);
  void take_messages(Operation& operation);
  void operate();

  void connect();
  void send();
  void send_to(const Known& known);
  void receive();
  void cancel();
  void probe();
  void disconnect();
  void access();
  void keep_receiving();
  Status try_copy(PeerId peer, Tag tag, std::span<const std::byte> bytes, Operation& operation);
  std::uint8_t draw_space();
  Status begin_send(PeerId peer, Tag tag, Operation& operation);

  void post_receive(const Wanted& wanted, bool must_match);
  void post_shared(Wanted wanted);
  Operation& take(std::size_t capacity);
  Known* any_known();
  void forget(PeerId id);
  PeerId draw_source();

  template <typename... Values>
  void note(fmt::format_string<Values...> text, Values&&... values) {
    if (!shared_.trace.on()) return;
    shared_.trace.note(node_.network_now(), fmt::format("host {}: ", node_.host()) +
                                                fmt::format(text, std::forward<Values>(values)...));
  }

  Shared& shared_;
  Node& node_;
  const ProgramPlan plan_;
  Random random_;
  std::size_t operations_left_;
  Instant next_operation_;
  Mode mode_ = Mode::kRandom;
  bool stopped_ = false;
  std::uint64_t posts_ = 0;
  std::vector<Known> known_;
  std::vector<std::unique_ptr<Operation>> pending_;  // in the order begun
  std::vector<std::unique_ptr<Operation>> free_;
  RemoteWork work_;
  BadHeads bad_heads_;
};

}  // namespace pullman::sim
