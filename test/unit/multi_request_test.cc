// pullman/multi_request.h: when one message to many peers is done, and who holds its bytes.
#include "pullman/multi_request.h"

#include <catch2/catch.hpp>

namespace pullman {
namespace {

SharedBytes some_bytes() {
  return std::make_shared<const std::vector<std::byte>>(1000, std::byte{7});
}

// As a context that copies nothing: each send refers to the message until it is finished.
void begin_sends(MultiRequest& request, std::size_t peers, const SharedBytes& message) {
  request.begin(peers, message);
  for (std::size_t i = 0; i < peers; ++i) {
    request.request(i).begin(detail::Operation::Kind::kSend, PeerId{}, 1);
  }
}

TEST_CASE("one message to many is held until the last send is done, and then by nobody") {
  const SharedBytes message = some_bytes();
  MultiRequest request;
  begin_sends(request, 3, message);
  CHECK(request.message().data() == message->data());
  CHECK(request.end() == Status::kPending);
  request.request(1).finish(Status::kOk, 1000);
  request.request(0).finish(Status::kOk, 1000);
  CHECK_FALSE(request.done());
  CHECK(message.use_count() == 2);
  request.request(2).finish(Status::kOk, 1000);
  CHECK(request.status() == Status::kOk);
  CHECK(message.use_count() == 1);
}

TEST_CASE("sends that are all done at once do not end what is still being begun") {
  const SharedBytes message = some_bytes();
  MultiRequest request;
  begin_sends(request, 2, message);
  request.request(0).finish(Status::kOk, 1000);
  request.request(1).finish(Status::kOk, 1000);
  CHECK_FALSE(request.done());
  CHECK(request.message().size() == 1000);
  CHECK(request.end() == Status::kOk);
  CHECK(message.use_count() == 1);
}

TEST_CASE("of sends to many the first that failed is told, and each can be asked") {
  MultiRequest request;
  begin_sends(request, 3, some_bytes());
  request.request(2).finish(Status::kUnreachable, 0);
  request.request(1).finish(Status::kPeerDied, 0);
  request.request(0).finish(Status::kOk, 1000);
  CHECK(request.end() == Status::kPeerDied);
  CHECK(request.status(0) == Status::kOk);
  CHECK(request.status(2) == Status::kUnreachable);
}

TEST_CASE("a request of many can be used again, for more peers, fewer, and none") {
  MultiRequest request;
  for (const std::size_t peers : {2, 5, 1, 0}) {
    begin_sends(request, peers, nullptr);
    CHECK(request.message().empty());
    for (std::size_t i = 0; i < peers; ++i) request.request(i).finish(Status::kOk, 0);
    CHECK(request.end() == Status::kOk);
    CHECK(request.peers() == peers);
  }
}

}  // namespace
}  // namespace pullman
