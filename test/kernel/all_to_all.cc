// One of many processes that all send to each other, and some of which are killed and started
// again. Driven by test/kernel/test_all_to_all.py, which judges them by their counters; what each
// sees for itself is that the messages of a connection come once, in order, and whole.
//
// A process connects to those of higher rank, again whenever the connection has ended. SIGUSR1: it
// sends no more, and goes on receiving. SIGTERM: it closes, and ends. Exit code: 0 all well; 1
// wrong.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <list>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "pullman/pullman.h"

namespace {

using pullman::PeerId;
using Clock = std::chrono::steady_clock;

constexpr pullman::Tag kTag = 1;
constexpr std::size_t kLongest = 100'000;  // bytes: some messages are long ones
constexpr std::size_t kReceives = 64;
constexpr std::chrono::milliseconds kPause{1};
constexpr std::chrono::milliseconds kBeforeCall{200};

volatile std::sig_atomic_t quiet = 0;
volatile std::sig_atomic_t ended = 0;

struct Head {
  std::uint32_t rank = 0;
  std::uint32_t size = 0;
  std::uint64_t number = 0;  // in its connection, from 0 on
};

std::byte filling(const Head& head, std::size_t at) {
  return static_cast<std::byte>(head.number * 31 + head.rank * 7 + at);
}

class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// One of the others.
struct Other {
  std::string address;
  std::optional<PeerId> peer{};
  std::uint64_t sent = 0;  // on this connection
  Clock::time_point call_at{};
};

class Everyone {
 public:
  Everyone(std::vector<std::string> addresses, std::uint32_t rank, std::uint32_t seed)
      : rank_(rank), dice_(seed) {
    for (std::string& address : addresses) others_.push_back({.address = std::move(address)});
    for (Slot& slot : slots_) post(slot);
  }
  // Ends the requests, so that they may be destroyed.
  ~Everyone() { context_.close(std::chrono::seconds(0)); }
  Everyone(const Everyone&) = delete;
  Everyone& operator=(const Everyone&) = delete;

  void run() {
    while (!ended) {
      for (std::uint32_t i = 0; i < others_.size(); ++i) {
        if (i != rank_) tend(i);
      }
      if (!quiet) send_to(static_cast<std::uint32_t>(dice_() % others_.size()));
      context_.wait_for_arrival(kPause);
      while (context_.accept()) {
      }
      // Messages fill receives in the order in which these were posted.
      while (slots_[oldest_].request.done()) {
        take(slots_[oldest_]);
        post(slots_[oldest_]);
        oldest_ = (oldest_ + 1) % slots_.size();
      }
      sent_.remove_if([](const Sent& sent) { return sent.request.done(); });
    }
    if (context_.close() != pullman::Status::kOk) throw Failure("close() did not end in time");
  }

 private:
  struct Slot {
    std::vector<std::byte> bytes = std::vector<std::byte>(kLongest);
    pullman::Request request;
  };
  struct Sent {
    std::vector<std::byte> bytes;
    pullman::Request request;
  };
  struct Hash {
    std::size_t operator()(PeerId peer) const {
      return std::hash<std::uint64_t>()(std::uint64_t{peer.generation} << 32 | peer.index);
    }
  };
  // What has come on one connection. Kept when it has ended, since some of that may not be taken
  // yet.
  struct Source {
    std::uint32_t rank = 0;
    std::uint64_t next = 0;
  };

  void tend(std::uint32_t rank) {
    Other& other = others_[rank];
    const Clock::time_point now = Clock::now();
    if (other.peer && context_.peer_state(*other.peer) == pullman::PeerState::kGone) {
      context_.disconnect(*other.peer);
      other = {.address = other.address, .call_at = now + kBeforeCall};
    }
    if (!other.peer && rank > rank_ && now >= other.call_at) {
      other.peer = context_.connect(other.address);
      other.sent = 0;
    }
  }

  void send_to(std::uint32_t rank) {
    Other& other = others_[rank];
    if (!other.peer || sent_.size() >= 4 * others_.size()) return;
    const std::size_t draw = dice_();
    const std::size_t most = draw % 16 == 0 ? kLongest : 1000;
    const std::size_t size = sizeof(Head) + draw / 16 % (most - sizeof(Head));
    const Head head{rank_, static_cast<std::uint32_t>(size), other.sent};
    Sent& sent = sent_.emplace_back();
    sent.bytes.resize(size);
    std::memcpy(sent.bytes.data(), &head, sizeof(head));
    for (std::size_t i = sizeof(head); i < size; ++i) sent.bytes[i] = filling(head, i);
    const pullman::Status status = context_.send(*other.peer, kTag, sent.bytes, sent.request);
    // The peer may have ended since.
    if (status == pullman::Status::kOk || status == pullman::Status::kPending) ++other.sent;
  }

  void post(Slot& slot) { context_.receive(pullman::kAnyPeer, kTag, 0, slot.bytes, slot.request); }

  void take(const Slot& slot) {
    const pullman::Request& done = slot.request;
    if (done.status() != pullman::Status::kOk) return;  // its sender ended in the middle of it
    Head head;
    if (done.length() < sizeof(head)) throw Failure("a message is too short");
    std::memcpy(&head, slot.bytes.data(), sizeof(head));
    if (head.size != done.length() || head.rank >= others_.size() || head.rank == rank_) {
      throw Failure(fmt::format("a message of {} bytes says that it has {}, from {}", done.length(),
                                head.size, head.rank));
    }
    Source& source = sources_.try_emplace(done.source(), Source{head.rank}).first->second;
    // Of a process that was killed some message may be missing of which only a part has come.
    const bool lives = context_.peer_state(done.source()) == pullman::PeerState::kConnected;
    const bool follows = lives ? head.number == source.next : head.number >= source.next;
    if (source.rank != head.rank || !follows) {
      throw Failure(fmt::format("message {} of rank {}, where {} of rank {} is the next",
                                head.number, head.rank, source.next, source.rank));
    }
    source.next = head.number + 1;
    for (std::size_t i = sizeof(head); i < head.size; ++i) {
      if (slot.bytes[i] != filling(head, i)) throw Failure("a byte is wrong");
    }
    // It has connected to this one.
    Other& other = others_[head.rank];
    if (other.peer != done.source() && head.rank < rank_ &&
        context_.peer_state(done.source()) == pullman::PeerState::kConnected) {
      other.peer = done.source();
      other.sent = 0;
    }
  }

  const std::uint32_t rank_;
  std::minstd_rand dice_;
  std::vector<Other> others_;
  std::unordered_map<PeerId, Source, Hash> sources_;
  std::vector<Slot> slots_ = std::vector<Slot>(kReceives);
  std::size_t oldest_ = 0;  // the slot that was posted first
  std::list<Sent> sent_;
  pullman::Context context_;  // its port and NIC come from the environment
};

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> addresses;
  std::uint32_t rank = 0;
  std::uint32_t seed = 1;
  CLI::App app("One of many processes that send to each other.");
  app.add_option("addresses", addresses, "of all, by rank");
  app.add_option("--rank", rank);
  app.add_option("--seed", seed);
  CLI11_PARSE(app, argc, argv);
  std::signal(SIGUSR1, [](int) { quiet = 1; });
  std::signal(SIGTERM, [](int) { ended = 1; });
  try {
    Everyone(std::move(addresses), rank, seed).run();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %u: %s\n", rank, error.what());
    return 1;
  }
}
