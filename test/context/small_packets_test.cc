// The shortest packet size that a NIC may have.
#include <catch2/catch.hpp>

#include "context/exchange.h"

namespace pullman::test {
namespace {

TEST_CASE("packets of 576 bytes carry messages of every size, and 575 are refused") {
  Config config = config_of(GENERATE("udp", "tcp"));
  config.packet_bytes = 576;

  Exchange exchange(config);
  CHECK(exchange.works());
  CHECK(exchange.closes());

  config.packet_bytes = 575;
  CHECK_THROWS_WITH(Context(config), Catch::Contains("576 to 65507"));
}

}  // namespace
}  // namespace pullman::test
