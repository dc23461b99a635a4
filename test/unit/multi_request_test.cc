// pullman/multi_request.h: when one message to many peers is done, and who holds its bytes.
#include "pullman/multi_request.h"

#include <catch2/catch.hpp>

#include "message/multi_request.h"
#include "message/operation.h"

namespace pullman {
namespace {

SharedBytes some_bytes() {
  return std::make_shared<const std::vector<std::byte>>(1000, std::byte{7});
}

MultiRequest::State& sends_of(MultiRequest& request) {
  return MultiRequest::State::of(request);
}

Request::Operation& send_of(MultiRequest& request, std::size_t index) {
  return Request::Operation::of(sends_of(request).request(index));
}

// Begins sends as a context does that copies nothing: each refers to the message until it ends.
void begin_sends(MultiRequest& request, std::size_t peers, const SharedBytes& message) {
  sends_of(request).begin(peers, message);
  for (std::size_t i = 0; i < peers; ++i) {
    send_of(request, i).begin(Request::Operation::Kind::kSend, PeerId{}, 1);
  }
}

TEST_CASE("one message to many peers is held until the last send is done, and then released") {
  const SharedBytes message = some_bytes();
  MultiRequest request;
  begin_sends(request, 3, message);
  CHECK(sends_of(request).message().data() == message->data());
  CHECK(sends_of(request).end() == Status::kPending);
  send_of(request, 1).finish(Status::kOk, 1000);
  send_of(request, 0).finish(Status::kOk, 1000);
  CHECK_FALSE(request.done());
  CHECK(message.use_count() == 2);
  send_of(request, 2).finish(Status::kOk, 1000);
  CHECK(request.status() == Status::kOk);
  CHECK(message.use_count() == 1);
}

TEST_CASE("sends that finish at once do not finish a request that is still being started") {
  const SharedBytes message = some_bytes();
  MultiRequest request;
  begin_sends(request, 2, message);
  send_of(request, 0).finish(Status::kOk, 1000);
  send_of(request, 1).finish(Status::kOk, 1000);
  CHECK_FALSE(request.done());
  CHECK(sends_of(request).message().size() == 1000);
  CHECK(sends_of(request).end() == Status::kOk);
  CHECK(message.use_count() == 1);
}

TEST_CASE("a request of many sends reports the first that failed, and each can be queried") {
  MultiRequest request;
  begin_sends(request, 3, some_bytes());
  send_of(request, 2).finish(Status::kUnreachable, 0);
  send_of(request, 1).finish(Status::kPeerDied, 0);
  send_of(request, 0).finish(Status::kOk, 1000);
  CHECK(sends_of(request).end() == Status::kPeerDied);
  CHECK(request.status(0) == Status::kOk);
  CHECK(request.status(2) == Status::kUnreachable);
}

TEST_CASE("a request of many can be used again, for more peers, fewer, and none") {
  MultiRequest request;
  for (const std::size_t peers : {2, 5, 1, 0}) {
    begin_sends(request, peers, nullptr);
    CHECK(sends_of(request).message().empty());
    for (std::size_t i = 0; i < peers; ++i) send_of(request, i).finish(Status::kOk, 0);
    CHECK(sends_of(request).end() == Status::kOk);
    CHECK(request.peers() == peers);
  }
}

}  // namespace
}  // namespace pullman
