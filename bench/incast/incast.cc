// Many senders, one receiver: do they share, and does the whole keep up with one?
//
//   incast receive SENDERS SECONDS        says where it is, and then what it got, as JSON
//   incast send SENDERS ADDRESS           as many contexts, each with a port of its own
//
// All senders are one process that serves them in turn: on a machine with two cores 64 processes
// would measure the scheduler. Options of the contexts: the PULLMAN_* variables.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "pullman/pullman.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMessageBytes = 64 * 1024;
constexpr std::size_t kMessagesEach = 8;  // under way
// Nobody is heard for so long: the other end is not there any more.
constexpr auto kPatience = std::chrono::seconds(20);

// Jain: 1 if all got the same, 1/n if one got all.
double fairness(const std::map<std::uint32_t, double>& shares, std::size_t senders) {
  double sum = 0, squares = 0;
  for (const auto& [who, share] : shares) {
    sum += share;
    squares += share * share;
  }
  return squares == 0 ? 0 : sum * sum / (static_cast<double>(senders) * squares);
}

class Receiver {
 public:
  explicit Receiver(std::size_t senders) : senders_(senders), buffer_(kMessageBytes) {
    for (std::size_t i = 0; i < senders * 2; ++i) {
      requests_.push_back(std::make_unique<pullman::Request>());
      post(*requests_.back());
    }
    std::printf("%s\n", context_.address().c_str());
    std::fflush(stdout);
  }
  ~Receiver() { context_.close(std::chrono::seconds(0)); }

  // A quarter of the time is for them to find their shares.
  nlohmann::json measure(std::chrono::duration<double> seconds) {
    if (!take_until([&] { return taken_.size() == senders_; }, Clock::now() + kPatience)) {
      throw std::runtime_error("not all senders were heard");
    }
    take_for(seconds / 4);
    taken_.clear();
    const auto start = Clock::now();
    take_for(seconds);
    const std::chrono::duration<double> took = Clock::now() - start;
    double sum = 0;
    for (const auto& [who, share] : taken_) sum += share;
    const pullman::Stats stats = context_.stats();
    return {{"senders", senders_},
            {"mb_per_s", sum / 1e6 / took.count()},
            {"fairness", fairness(taken_, senders_)},
            {"receive_overflows", stats.nic_receive_overflows},
            {"duplicate_packets", stats.duplicate_packets}};
  }

 private:
  void post(pullman::Request& request) {
    // Whose bytes land where does not matter: nobody reads them.
    context_.receive(pullman::kAnyPeer, 0, 0, buffer_, request);
  }

  void take_for(std::chrono::duration<double> seconds) {
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(seconds);
    take_until([] { return false; }, end);
  }

  template <typename Enough>
  bool take_until(Enough enough, Clock::time_point end) {
    while (!enough()) {
      if (Clock::now() >= end) return false;
      if (context_.progress() == 0) continue;
      for (auto& request : requests_) {
        if (!request->done()) continue;
        if (request->status() == pullman::Status::kOk) {
          taken_[request->source().index] += static_cast<double>(request->length());
        }
        post(*request);
      }
    }
    return true;
  }

  pullman::Context context_;
  std::size_t senders_;
  std::vector<std::byte> buffer_;
  std::vector<std::unique_ptr<pullman::Request>> requests_;
  std::map<std::uint32_t, double> taken_;  // bytes, by peer
};

class Sender {
 public:
  Sender(const pullman::Config& config, std::string_view address, std::span<const std::byte> bytes)
      : context_(config), peer_(context_.connect(address)), bytes_(bytes) {
    for (std::size_t i = 0; i < kMessagesEach; ++i) {
      requests_.push_back(std::make_unique<pullman::Request>());
    }
  }
  ~Sender() { context_.close(std::chrono::seconds(0)); }

  // False once the receiver is gone.
  bool turn() {
    context_.progress();
    for (auto& request : requests_) {
      if (request->done()) context_.send(peer_, 0, bytes_, *request);
    }
    return context_.peer_state(peer_) != pullman::PeerState::kGone;
  }

  pullman::Stats stats() const { return context_.stats(); }

 private:
  pullman::Context context_;
  pullman::PeerId peer_;
  std::span<const std::byte> bytes_;
  std::vector<std::unique_ptr<pullman::Request>> requests_;
};

nlohmann::json send(std::size_t senders, const char* address) {
  pullman::Config config = pullman::Config::from_environment();
  config.max_peers = 4;
  config.send_packets = 4096;
  const std::vector<std::byte> bytes(kMessageBytes);
  std::vector<std::unique_ptr<Sender>> all;
  for (std::size_t i = 0; i < senders; ++i) {
    all.push_back(std::make_unique<Sender>(config, address, bytes));
  }
  for (bool going = true; going;) {
    for (auto& sender : all) going = sender->turn() && going;
  }
  std::uint64_t again = 0, spurious = 0, timeouts = 0, rtt_ns = 0;
  for (const auto& sender : all) {
    const pullman::Stats stats = sender->stats();
    again += stats.retransmits;
    spurious += stats.spurious_retransmits;
    timeouts += stats.timeouts;
    rtt_ns += stats.rtt_ns;
  }
  return {{"retransmits", again},
          {"spurious_retransmits", spurious},
          {"timeouts", timeouts},
          {"mean_rtt_us", static_cast<double>(rtt_ns) / 1e3 / static_cast<double>(senders)}};
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view verb = argc == 4 ? argv[1] : "";
  const std::size_t senders = argc == 4 ? std::strtoul(argv[2], nullptr, 10) : 0;
  if (senders == 0 || (verb != "receive" && verb != "send")) {
    std::fprintf(stderr, "incast receive SENDERS SECONDS | incast send SENDERS ADDRESS\n");
    return 2;
  }
  try {
    const nlohmann::json result =
        verb == "send"
            ? send(senders, argv[3])
            : Receiver(senders).measure(std::chrono::duration<double>(std::atof(argv[3])));
    std::printf("%s\n", result.dump().c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "incast: %s\n", error.what());
    return 1;
  }
}
