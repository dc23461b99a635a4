// Needs what a program needs: headers, calls, and an exception that crosses from the library.
#include <pullman/pullman.h>

#include <array>
#include <cstdio>

int main() {
  pullman::Config config;
  config.nics = {"lo"};
  pullman::Context context(config);
  try {
    context.connect("no address");
    return 1;
  } catch (const pullman::Error& error) {
    std::printf("refused: %s\n", error.what());
  }

  const pullman::PeerId self = context.connect(context.address());
  std::array<std::byte, 1000> sent{std::byte{42}};
  std::array<std::byte, 1000> received{};
  pullman::Request send;
  pullman::Request receive;
  context.receive(self, 1, 0, received, receive);
  context.send(self, 1, sent, send);
  if (context.wait(receive) != pullman::Status::kOk || received != sent) return 1;
  if (context.wait(send) != pullman::Status::kOk) return 1;
  std::printf("received %zu bytes\n", receive.length());
}
