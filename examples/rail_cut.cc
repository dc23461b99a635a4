// Shows the rails to a peer while somebody cuts one of them: nothing here does anything about it.
//
//   rail_cut                          serves, and says its address
//   rail_cut HOST:PORT [SECONDS]      sends to it (60 s), and says what becomes of the rails
//   rail_cut HOST:PORT SECONDS NIC    the same; drains NIC for the middle third of the time
//
// Meanwhile, as root: ip link set NIC down; sleep 3; ip link set NIC up
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pullman/pullman.h"

namespace {

using Clock = std::chrono::steady_clock;
using pullman::Status;

constexpr pullman::Tag kData = 1;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Receives numbers until the other end closes, and says whether one was missing or came twice.
int serve() {
  pullman::Context context;
  std::printf("rail_cut %s\n", context.address().c_str());
  std::fflush(stdout);
  std::uint64_t number = 0, expected = 0, wrong = 0;
  pullman::Request request;
  for (pullman::PeerId peer = pullman::kAnyPeer;; peer = request.source()) {
    context.receive(peer, kData, 0, std::as_writable_bytes(std::span(&number, 1)), request);
    if (const Status status = context.wait(request); status != Status::kOk) {
      std::printf("%llu messages, %llu wrong; %s\n", static_cast<unsigned long long>(expected),
                  static_cast<unsigned long long>(wrong), name(status));
      return status == Status::kPeerClosed && wrong == 0 ? 0 : 1;
    }
    if (number != expected++) ++wrong;
  }
}

// A line for each rail that is not as it was.
class Board {
 public:
  void show(double seconds, const std::vector<pullman::RailView>& rails) {
    for (const pullman::RailView& rail : rails) {
      const std::string now = std::string(name(rail.state)) + ", " + name(rail.reason);
      if (std::exchange(shown_[rail.number], now) == now) continue;
      std::printf("%7.3f s  rail %u, %s to %s: %s (%llu packets sent, %llu moved to other rails)\n",
                  seconds, rail.number, rail.nic.c_str(), rail.remote.c_str(), now.c_str(),
                  static_cast<unsigned long long>(rail.packets_sent),
                  static_cast<unsigned long long>(rail.evacuated));
      std::fflush(stdout);
    }
  }

 private:
  std::map<unsigned, std::string> shown_;
};

int call(const std::string& address, double seconds, const std::string& nic) {
  pullman::Context context;
  const pullman::PeerId peer = context.connect(address);
  Board board;
  pullman::Request request;
  int third = 0;  // of the time: one that has begun
  const Clock::time_point start = Clock::now();
  for (std::uint64_t number = 0; seconds_since(start) < seconds; ++number) {
    context.send(peer, kData, std::as_bytes(std::span(&number, 1)), request);
    if (const Status status = context.wait(request); status != Status::kOk) {
      std::fprintf(stderr, "rail_cut: %s\n", to_sentence(status));
      return 1;
    }
    board.show(seconds_since(start), context.rails(peer));
    if (nic.empty() || third == 2 || seconds_since(start) < seconds / 3 * (third + 1)) continue;
    const Status status = third++ == 0 ? context.drain_rail(nic) : context.restore_rail(nic);
    std::printf("%s %s: %s\n", third == 1 ? "drain" : "restore", nic.c_str(), to_sentence(status));
  }
  return context.close() == Status::kOk ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 1) return serve();
    return call(argv[1], argc > 2 ? std::atof(argv[2]) : 60, argc > 3 ? argv[3] : "");
  } catch (const pullman::Error& error) {
    std::fprintf(stderr, "rail_cut: %s\n", error.what());
    return 1;
  }
}
