// Two processes exchange 100,000 short messages.
//
//   pingpong                    waits for the other, says where it is
//   pingpong 10.0.0.1:7100      goes there
#include <chrono>
#include <cstdio>
#include <exception>
#include <vector>

#include "pullman/pullman.h"

namespace {

constexpr int kRounds = 100'000;
constexpr pullman::Tag kPing = 1;
constexpr pullman::Tag kPong = 2;

// Waits for one request, and stops the program if it failed.
void finish(pullman::Context& context, pullman::Request& request) {
  const pullman::Status status = context.wait(request);
  if (status == pullman::Status::kOk) return;
  context.close(std::chrono::seconds(0));  // ends the other request, so that it may be destroyed
  throw pullman::Error(status, pullman::to_sentence(status));
}

void serve(pullman::Context& context) {
  std::vector<std::byte> buffer(64);
  pullman::Request receiving;
  pullman::Request sending;
  for (int round = 0; round < kRounds; ++round) {
    context.receive(pullman::kAnyPeer, kPing, 0, buffer, receiving);
    finish(context, receiving);
    context.send(receiving.source(), kPong, buffer, sending);
    finish(context, sending);
  }
}

void play(pullman::Context& context, pullman::PeerId peer) {
  std::vector<std::byte> buffer(64);
  pullman::Request receiving;
  pullman::Request sending;
  const auto start = std::chrono::steady_clock::now();
  for (int round = 0; round < kRounds; ++round) {
    context.receive(peer, kPong, 0, buffer, receiving);
    context.send(peer, kPing, buffer, sending);
    finish(context, sending);
    finish(context, receiving);
  }
  const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - start;
  std::printf("%d rounds, %.2f us each way\n", kRounds, taken.count() / kRounds / 2);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    pullman::Context context;  // options: the PULLMAN_* environment variables
    if (argc > 1) {
      play(context, context.connect(argv[1]));
    } else {
      std::printf("on the other machine: pingpong %s\n", context.address().c_str());
      std::fflush(stdout);
      serve(context);
    }
    context.close();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pingpong: %s\n", error.what());
    return 1;
  }
}
