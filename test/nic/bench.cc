#include <algorithm>
#include <catch2/catch.hpp>

#include "nic/contract.h"

namespace pullman::nic::contract {
namespace {

// Turns to wait for what must come (a turn without arrivals lets time pass), and turns to see that
// nothing more comes.
constexpr int kPatience = 20000;
constexpr int kQuietTurns = 20;
constexpr std::size_t kBatch = 16;

std::vector<Outgoing> outgoing(const std::vector<Packet>& packets, Destination to) {
  std::vector<Outgoing> out;
  for (const Packet& packet : packets) {
    const std::span<const std::byte> bytes(packet);
    const std::size_t head = std::min<std::size_t>(bytes.size(), 24);
    out.push_back({.head = bytes.first(head), .payload = bytes.subspan(head), .to = to});
  }
  return out;
}

}  // namespace

Packet make_packet(std::size_t bytes, unsigned seed) {
  Packet packet(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    packet[i] = static_cast<std::byte>((i * 31 + i / 251 + seed * 7919 + seed / 256) & 0xFF);
  }
  return packet;
}

Bench::Bench(PortFactory& factory, const PortOptions& sender, const PortOptions& receiver)
    : factory_(factory), here_(factory.open(sender)), there_(factory.open(receiver)) {
  to_ = resolve(there_->address());
}

Bench::~Bench() {
  here_.reset();
  there_.reset();
  INFO(factory_.complaint());
  CHECK(factory_.complaint().empty());
}

std::vector<PortEvent> Bench::events(std::size_t count) {
  std::vector<PortEvent> found;
  int quiet = 0;
  for (int turn = 0; turn < kPatience && quiet < kQuietTurns; ++turn) {
    PortEvent event;
    if (here_->poll_events({&event, 1}) == 1) {
      found.push_back(event);
    } else {
      factory_.pass_time();
      quiet += found.size() >= count;
    }
  }
  return found;
}

Destination Bench::resolve(const Address& address) {
  here_->resolve(address, 7);
  const auto found = events(1);
  REQUIRE(found.size() == 1);
  REQUIRE(found.front().kind == PortEvent::Kind::kResolved);
  REQUIRE(found.front().cookie == 7);
  return found.front().to;
}

std::size_t Bench::offer(const std::vector<Packet>& packets) {
  return here_->send(outgoing(packets, to_));
}

void Bench::send(const std::vector<Packet>& packets) {
  const auto batch = outgoing(packets, to_);
  std::size_t taken = 0;
  for (int turn = 0; turn < kPatience && taken < batch.size(); ++turn) {
    const std::size_t more = here_->send(std::span(batch).subspan(taken));
    REQUIRE(more <= batch.size() - taken);
    taken += more;
    if (more == 0) factory_.pass_time();
  }
  REQUIRE(taken == batch.size());
}

// A port works only during its owner's calls.
void Bench::give_time() {
  if (here_ != nullptr) here_->receive({});
  factory_.pass_time();
}

std::vector<Incoming> Bench::borrow(std::size_t count) {
  std::vector<Incoming> lent(count);
  std::size_t got = 0;
  for (int turn = 0; turn < kPatience && got < count; ++turn) {
    const std::size_t more = there_->receive(std::span(lent).subspan(got));
    got += more;
    if (more == 0) give_time();
  }
  lent.resize(got);
  return lent;
}

std::vector<Packet> Bench::receive(std::size_t count) {
  std::vector<Packet> packets;
  while (packets.size() < count) {
    const auto lent = borrow(std::min(kBatch, count - packets.size()));
    for (const Incoming& in : lent) packets.emplace_back(in.bytes.begin(), in.bytes.end());
    there_->give_back(lent);
    if (lent.empty()) break;
  }
  return packets;
}

bool Bench::nothing_arrives() {
  for (int turn = 0; turn < kQuietTurns; ++turn) {
    Incoming in;
    if (there_->receive({&in, 1}) != 0) return false;
    give_time();
  }
  return true;
}

}  // namespace pullman::nic::contract
