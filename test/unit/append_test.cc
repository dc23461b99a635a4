// message/tx/outbox.cc: append(), the short path of small messages behind others that wait: what it
// takes, and that it takes nothing that send() would hold back.
#include <catch2/catch.hpp>
#include <vector>

#include "outbox_sender.h"

namespace pullman::message {
namespace {

constexpr std::size_t kSmall = 8;

struct Scene : OutboxSender {
  using OutboxSender::OutboxSender;

  bool append(std::size_t bytes) { return outbox.append(5, {message.data(), bytes}); }
  // Returns how many messages of that size are taken, by append() where it does, before one waits.
  std::size_t taken(std::size_t bytes) {
    for (std::size_t count = 0;; ++count) {
      if (append(bytes)) continue;
      send(bytes);
      if (!requests.back().done()) return count;
      requests.pop_back();
    }
  }
};

std::size_t taken_by_send(Scene& scene, std::size_t bytes) {
  for (std::size_t count = 0;; ++count) {
    scene.send(bytes);
    if (!scene.requests.back().done()) return count;
    scene.requests.pop_back();
  }
}

}  // namespace

TEST_CASE(
    "a small message joins others in the last packet that waits, in order, while it has room") {
  Scene scene;
  CHECK_FALSE(scene.append(kSmall));  // no packet waits
  scene.send(kSmall);
  std::uint32_t count = 1;
  while (scene.append(kSmall)) ++count;
  CHECK(count == (Scene::kPacket - wire::kHeaderBytes) / (wire::kMessageBytes + kSmall));
  REQUIRE(scene.outbox.queued_packets() == 1);
  scene.send(kSmall);
  CHECK(scene.append(kSmall));
  REQUIRE(scene.outbox.queued_packets() == 2);

  std::vector<std::uint32_t> ids;
  while (Packet* packet = scene.outbox.next_packet()) {
    CHECK(packet->used <= Scene::kPacket);
    wire::FrameReader reader(packet->body());
    for (wire::Frame frame; reader.next(frame);) {
      CHECK(frame.data.size() == kSmall);
      ids.push_back(frame.id);
    }
    scene.outbox.handle_acked(*packet);
    scene.pool.give_back(*packet);
  }
  REQUIRE(ids.size() == count + 2);
  for (std::size_t i = 0; i < ids.size(); ++i) CHECK(ids[i] == Scene::kFirst + i);
  CHECK(scene.outbox.idle());
}

TEST_CASE("append() keeps to the window of ids, the allowance and the eager bytes as send() does") {
  const std::size_t bytes = GENERATE(0, 8, 100);
  const std::uint64_t allowance = GENERATE(8192, 30'000, 1 << 30);
  constexpr std::uint32_t kEager = 99;
  Scene short_way(allowance, kEager);
  Scene usual(allowance, kEager);
  const std::size_t count = short_way.taken(bytes);
  CHECK(count == taken_by_send(usual, bytes));
  if (bytes > kEager) CHECK(count == 0);
  if (bytes == 0 && allowance == 1 << 30) CHECK(count == kIdWindow);
}

TEST_CASE("a small message does not overtake one that waits") {
  Scene scene(8192);
  scene.send(kSmall);
  scene.send(7000);
  scene.send(2000);  // more than the allowance left
  REQUIRE_FALSE(scene.requests.back().done());
  CHECK_FALSE(scene.append(kSmall));  // for which the allowance would do
  scene.outbox.handle_allowance(1 << 20, 1 << 20);
}

}  // namespace pullman::message
