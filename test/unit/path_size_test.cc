// reliability/path_size.h: how long packets may be, as losses and ACKs of packets show.
#include "reliability/path_size.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

namespace pullman::reliability {
namespace {

using std::chrono::seconds;

constexpr std::size_t kMost = 8972;

Instant at(std::int64_t n) {
  return Instant(seconds(n));
}

struct Path {
  explicit Path(std::size_t most = kMost) { size.start(most); }

  // A round in which a packet of that many bytes was lost.
  void lose(std::size_t bytes) {
    size.handle_lost(number, bytes, number + 10);
    number += 10;
  }
  void fall() {
    for (int round = 0; round < 3; ++round) lose(size.bytes());
  }
  // Sends probes while any is due; returns their lengths.
  std::vector<std::size_t> search(Instant now, std::size_t carried) {
    std::vector<std::size_t> probes;
    while (size.probe_due(now) && probes.size() < 100) {
      const std::size_t bytes = size.begin_probe();
      probes.push_back(bytes);
      if (bytes <= carried) {
        size.handle_probe_acked(now, bytes);
      } else {
        size.handle_probe_lost(now, bytes);
      }
    }
    return probes;
  }

  PathSize size;
  PacketNumber number = 1000;
};

TEST_CASE("without losses packets are as long as both NICs take, and nothing is probed") {
  Path path;

  CHECK(path.size.bytes() == kMost);
  CHECK_FALSE(path.size.probe_due(at(1'000'000)));
  CHECK_FALSE(path.size.watching());
}

TEST_CASE("losses in three rounds without an arrival are a black hole") {
  Path path;

  path.lose(kMost);
  path.lose(kMost);
  CHECK(path.size.bytes() == kMost);
  path.lose(kMost);

  CHECK(path.size.bytes() == PathSize::kBase);
  CHECK(path.size.has_news());
}

TEST_CASE("many losses of one round count once") {
  Path path;

  for (PacketNumber n = 1; n < 50; ++n) path.size.handle_lost(n, kMost, 50);

  CHECK(path.size.bytes() == kMost);
  CHECK(path.size.watching());
}

TEST_CASE(
    "an ACK of a packet as long as the lost ones clears the path, one of a shorter packet does "
    "not") {
  Path path;
  path.lose(1400);
  path.lose(1400);

  path.size.handle_acked(1399);
  CHECK(path.size.watching());
  path.size.handle_acked(1400);
  CHECK_FALSE(path.size.watching());

  path.lose(1400);
  path.lose(1400);
  CHECK(path.size.bytes() == kMost);
}

TEST_CASE("losses of packets that any path must carry do not count against its size") {
  Path path;

  for (int i = 0; i < 100; ++i) path.lose(PathSize::kLeast);

  CHECK(path.size.bytes() == kMost);
  CHECK_FALSE(path.size.has_news());
}

TEST_CASE("losses of packets sent before the fall do not count against the new size") {
  Path path;
  path.fall();
  path.size.take_news();

  for (int i = 0; i < 10; ++i) path.lose(kMost);

  CHECK(path.size.bytes() == PathSize::kBase);
  CHECK_FALSE(path.size.has_news());
}

TEST_CASE("where packets of the base size are lost, too, the least size is used") {
  Path path;

  for (int round = 0; round < 3; ++round) path.lose(900);
  CHECK(path.size.bytes() == PathSize::kLeast);

  path.fall();
  CHECK(path.size.bytes() == PathSize::kLeast);
}

TEST_CASE("a fall that was a mistake is over with the first probe") {
  Path path;
  path.fall();

  CHECK(path.search(at(0), kMost) == std::vector<std::size_t>{kMost});
  CHECK(path.size.bytes() == kMost);
  CHECK_FALSE(path.size.probe_due(at(1'000'000)));
}

TEST_CASE("the search ends close below what the path carries, after three probes of each size") {
  const std::size_t carried = GENERATE(1200u, 1201u, 1372u, 1472u, 1500u, 4000u, 8000u, 8971u);
  Path path;
  path.fall();

  const auto probes = path.search(at(0), carried);

  CHECK(path.size.bytes() <= carried);
  CHECK(carried - path.size.bytes() <= carried / 64);
  CHECK(probes.size() <= 30);
  for (const std::size_t bytes : probes) {
    const auto times = std::count(probes.begin(), probes.end(), bytes);
    CHECK(times == (bytes <= carried ? 1 : 3));
  }
}

TEST_CASE("one probe is under way at a time") {
  Path path;
  path.fall();

  REQUIRE(path.size.probe_due(at(0)));
  path.size.begin_probe();
  CHECK_FALSE(path.size.probe_due(at(1000)));
}

TEST_CASE("a probe lost by chance is sent again") {
  Path path;
  path.fall();

  for (int i = 0; i < 2; ++i) {
    path.size.handle_probe_lost(at(0), path.size.begin_probe());
  }

  CHECK(path.size.begin_probe() == kMost);
}

TEST_CASE("after a search the next is 10 seconds later, the one after it 20, at last 600") {
  Path path;
  path.fall();
  path.search(at(0), 1400);
  std::int64_t now = 0;

  for (const std::int64_t wait : {10, 20, 40, 80, 160, 320, 600, 600, 600}) {
    CHECK_FALSE(path.size.probe_due(at(now + wait - 1)));
    now += wait;
    REQUIRE(path.size.probe_due(at(now)));
    path.search(at(now), 1400);
  }
}

TEST_CASE("a path that was narrow and is wide again has the full size after one probe") {
  Path path;
  path.fall();
  path.search(at(0), 1400);

  CHECK(path.search(at(10), kMost) == std::vector<std::size_t>{kMost});
  CHECK(path.size.bytes() == kMost);
}

TEST_CASE("a size that was confirmed can become a black hole, too") {
  Path path;
  path.fall();
  path.search(at(0), 4000);
  REQUIRE(path.size.bytes() > 3900);

  path.fall();

  CHECK(path.size.bytes() == PathSize::kBase);
  path.search(at(0), 1400);
  CHECK(path.size.bytes() <= 1400);
  CHECK(path.size.bytes() >= 1380);
}

TEST_CASE("an ICMP hint matters only after packets were lost") {
  Path path;

  path.size.handle_hint(at(0), 1400);
  CHECK(path.size.bytes() == kMost);

  path.lose(kMost);
  path.size.handle_hint(at(0), 1400);
  CHECK(path.size.bytes() == 1400);
}

TEST_CASE("a hint of a size that the lost packet did not exceed is ignored") {
  Path path;
  path.lose(1400);

  path.size.handle_hint(at(0), 1400);

  CHECK(path.size.bytes() == kMost);
}

TEST_CASE("a hint that longer probes confirm ends the search") {
  Path path;
  path.lose(kMost);
  path.size.handle_hint(at(0), 1353);

  CHECK(path.search(at(0), 1353) == std::vector<std::size_t>(3, kMost));
  CHECK(path.size.bytes() == 1353);
  CHECK_FALSE(path.size.probe_due(at(9)));
}

TEST_CASE(
    "a hint lowers the size no further than the base, or the least if packets of that are lost") {
  Path path;
  path.lose(kMost);
  path.size.handle_hint(at(0), 68);
  CHECK(path.size.bytes() == PathSize::kBase);

  path.lose(PathSize::kBase);
  path.size.handle_hint(at(0), 68);
  CHECK(path.size.bytes() == PathSize::kLeast);
}

TEST_CASE("after a wrong hint further ones are ignored for ten minutes") {
  Path path;
  path.lose(kMost);
  path.size.handle_hint(at(0), 1300);
  path.search(at(1), kMost);
  REQUIRE(path.size.bytes() == kMost);

  path.lose(kMost);
  path.size.handle_hint(at(600), 1250);
  CHECK(path.size.bytes() == kMost);

  path.size.handle_hint(at(601), 1250);
  CHECK(path.size.bytes() == 1250);
}

TEST_CASE("nothing is probed for a peer that takes short packets only") {
  Path path(PathSize::kLeast);

  path.fall();

  CHECK(path.size.bytes() == PathSize::kLeast);
  CHECK_FALSE(path.size.probe_due(at(1'000'000)));
}

}  // namespace
}  // namespace pullman::reliability
