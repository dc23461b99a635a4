#include "ofi/endpoint/lanes.h"

#include "domain.h"

namespace pullman::ofi::test {
namespace {

using State = ScalableContext::State;

ScalableContext* open_receive(Lanes& lanes, int index) {
  return lanes.open(Lanes::Direction::kReceive, index, EndpointHandle(), nullptr);
}

}  // namespace

TEST_CASE("a context of a scalable endpoint opens once, and again after it was closed") {
  Lanes lanes(1, 2);
  ScalableContext* const opened = open_receive(lanes, 1);
  REQUIRE(opened != nullptr);
  CHECK(opened->lane.index == 1);
  CHECK(opened->handle.lane == &opened->lane);
  CHECK(opened->handle.fid.fclass == FI_CLASS_RX_CTX);

  CHECK(open_receive(lanes, 1) == nullptr);

  opened->lane.aliases = 7;
  opened->state = State::kClosed;
  CHECK_FALSE(lanes.any_open());
  CHECK(open_receive(lanes, 1) == opened);
  CHECK(opened->lane.aliases == 0);
}

TEST_CASE("an index beyond the endpoint's contexts is refused") {
  Lanes lanes(1, 2);
  CHECK(open_receive(lanes, -1) == nullptr);
  CHECK(open_receive(lanes, 2) == nullptr);
  CHECK_FALSE(lanes.any_open());

  Lanes plain;
  CHECK(open_receive(plain, 0) == nullptr);
}

TEST_CASE("a context that is closing is still open, and is found by its handle only") {
  Lanes lanes(1, 2);
  ScalableContext* const opened = open_receive(lanes, 0);
  REQUIRE(opened != nullptr);
  CHECK_FALSE(lanes.is_closing(opened->handle));

  opened->state = State::kClosing;

  CHECK(lanes.is_closing(opened->handle));
  CHECK(lanes.any_open());
  CHECK(open_receive(lanes, 0) == nullptr);
  const EndpointHandle alias = opened->handle;
  CHECK_FALSE(lanes.is_closing(alias));
  CHECK(lanes.find(alias) == nullptr);
}

TEST_CASE("accesses by peers are reported at the first receive context that has a queue") {
  TestDomain domain;
  Lanes lanes(1, 3);
  CHECK(lanes.remote_access_bindings() == nullptr);
  REQUIRE(open_receive(lanes, 0) != nullptr);
  ScalableContext* const second = open_receive(lanes, 2);
  REQUIRE(second != nullptr);
  CHECK(lanes.remote_access_bindings() == nullptr);

  second->lane.bindings.receive_queue = &domain.queue();

  CHECK(lanes.remote_access_bindings() == &second->lane.bindings);
}

TEST_CASE("a plain endpoint reports accesses by peers on its own lane, with or without a queue") {
  Lanes lanes;
  CHECK(lanes.remote_access_bindings() == &lanes.own().bindings);
}

}  // namespace pullman::ofi::test
