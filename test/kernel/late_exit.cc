// Ends with its contexts in a static object, whose destructor has them exchange a long message once
// more: by then the main thread's own objects (thread_local) are gone.
#include <memory>
#include <vector>

#include "pullman/pullman.h"

namespace {

struct Late {
  void begin() {
    first = std::make_unique<pullman::Context>();
    second = std::make_unique<pullman::Context>();
    peer = first->connect(second->address());
  }
  bool exchange() {
    std::vector<std::byte> in(1 << 20);
    const std::vector<std::byte> out(in.size(), std::byte{7});
    pullman::Request received;
    pullman::Request sent;
    second->receive(pullman::kAnyPeer, 1, 0, in, received);
    first->send(peer, 1, out, sent);
    while (!received.done() || !sent.done()) {
      first->progress();
      second->progress();
    }
    return received.status() == pullman::Status::kOk && in == out;
  }
  ~Late() {
    if (first == nullptr || !exchange()) std::_Exit(2);
    first->close();
    second->close();
  }

  std::unique_ptr<pullman::Context> first;
  std::unique_ptr<pullman::Context> second;
  pullman::PeerId peer;
};

Late late;

}  // namespace

int main() {
  late.begin();
  return late.exchange() ? 0 : 1;
}
