// What an installed program relies on and a newer library must keep: the sizes of the objects that
// programs own, and the values passed in them (docs/decisions/0025-abi.md).
#include <catch2/catch.hpp>
#include <cstddef>

#include "message/operation.h"
#include "pullman/pullman.h"

namespace pullman {
namespace {

TEST_CASE("objects that programs own keep their sizes") {
  if (sizeof(void*) != 8) return;
  CHECK(sizeof(Request) == 264);
  CHECK(alignof(Request) == 8);
  CHECK(sizeof(MultiRequest) == 16);
  CHECK(sizeof(MultiReceive) == 48);
  CHECK(sizeof(Context) == 8);
  CHECK(sizeof(PeerId) == 8);
  CHECK(sizeof(SendOptions) == 24);
}

TEST_CASE("a request's fields that programs poll lie before the library's private part") {
  Request request;
  const auto* const begin = reinterpret_cast<const std::byte*>(&request);
  const auto* const opaque = reinterpret_cast<const std::byte*>(&Request::Operation::of(request));
  CHECK(opaque - begin == 64);
  CHECK(sizeof(Request::Operation) <= sizeof(Request) - 64);
}

TEST_CASE("statuses keep their numbers") {
  CHECK(static_cast<int>(Status::kPending) == 1);
  CHECK(static_cast<int>(Status::kNoMemory) == 18);
  CHECK(static_cast<int>(Status::kIncompatible) == 19);
}

}  // namespace
}  // namespace pullman
