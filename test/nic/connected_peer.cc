// The connected peer, which has its own socket: packets of it and of others keep their order and
// are received in time.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <span>
#include <vector>

#include "nic/contract.h"
#include "nic/factories.h"

namespace pullman::nic::contract {
namespace {

using Bursting = std::tuple<Kernel, KernelIpv6>;

// Two ports that send to a third, and the packets that the third must receive from them.
class TwoPeers {
 public:
  explicit TwoPeers(PortFactory& factory)
      : factory_(factory), first_(factory), second_(factory), third_(factory) {
    const auto address = third_.here().address();
    back_ = {first_.resolve(address), second_.resolve(address)};
    to_ = {third_.resolve(first_.here().address()), third_.resolve(second_.here().address())};
  }

  // The third port sends to this peer until it becomes the connected peer.
  void connect_to_peer(std::size_t peer) {
    const Packet packet = make_packet(60, 0);
    for (int i = 0; i < 200; ++i) {
      const Outgoing out{packet, {}, to_[peer]};
      REQUIRE(third_.here().send({&out, 1}) == 1);
    }
  }
  // Both send that many numbered packets: the first one by one, the second in a burst.
  void send(unsigned count) {
    std::vector<Packet> packets;
    for (unsigned i = 0; i < count; ++i, ++sent_) {
      packets.push_back({std::byte{0}, static_cast<std::byte>(sent_)});
      const Outgoing out{packets.back(), {}, back_[0]};
      REQUIRE(first_.here().send({&out, 1}) == 1);
    }
    std::vector<Outgoing> burst;
    for (Packet& packet : packets) {
      packet[0] = std::byte{1};
      burst.push_back({packet, {}, back_[1]});
    }
    REQUIRE(second_.here().send(burst) == count);
  }
  // Calls receive() once for a few packets; each peer's must be in order.
  void receive() {
    std::array<Incoming, 8> in;
    const std::size_t got = third_.here().receive(in);
    for (const Incoming& packet : std::span(in).first(got)) {
      REQUIRE(packet.bytes.size() == 2);
      unsigned& next = received_.at(static_cast<std::size_t>(packet.bytes[0]));
      REQUIRE(static_cast<unsigned>(packet.bytes[1]) == next);
      ++next;
    }
    third_.here().give_back(std::span(in).first(got));
    factory_.pass_time();
  }
  // The third calls receive() that often; this peer sends a packet before each.
  void listen_to(std::size_t peer, unsigned receives) {
    for (unsigned i = 0; i < receives; ++i) {
      send_one(peer);
      receive_one();
    }
  }
  void send_one(std::size_t peer) {
    const Packet packet{static_cast<std::byte>(peer), static_cast<std::byte>(told_[peer]++)};
    const Outgoing out{packet, {}, back_[peer]};
    REQUIRE((peer == 0 ? first_ : second_).here().send({&out, 1}) == 1);
  }
  // Sends more than eight packets.
  void flood(std::size_t peer) {
    for (int i = 0; i < 9; ++i) send_one(peer);
  }
  void receive_one() { receive_up_to(1); }
  void receive_eight() { receive_up_to(8); }
  unsigned received(std::size_t peer) const { return received_.at(peer); }

  void receive_all() {
    for (int turn = 0; turn < 1000 && std::min(received_[0], received_[1]) < sent_; ++turn) {
      receive();
    }
    CHECK(received_ == std::array<unsigned, 2>{sent_, sent_});
  }

 private:
  // Calls receive() once; order does not matter.
  void receive_up_to(std::size_t enough) {
    std::array<Incoming, 8> in;
    const std::size_t got = third_.here().receive(in, enough);
    for (const Incoming& packet : std::span(in).first(got)) {
      ++received_.at(static_cast<std::size_t>(packet.bytes[0]));
    }
    third_.here().give_back(std::span(in).first(got));
    factory_.pass_time();
  }

  PortFactory& factory_;
  Bench first_;
  Bench second_;
  Bench third_;
  std::array<Destination, 2> back_;
  std::array<Destination, 2> to_;
  unsigned sent_ = 0;               // by each of them
  std::array<unsigned, 2> told_{};  // sent by send_one()
  std::array<unsigned, 2> received_{};
};

TEMPLATE_LIST_TEST_CASE("a peer's packets keep their order when it becomes the connected peer", "",
                        Bursting) {
  TestType factory;
  TwoPeers peers(factory);

  peers.send(50);
  peers.connect_to_peer(0);
  peers.send(50);

  peers.receive_all();
}

TEMPLATE_LIST_TEST_CASE(
    "packets of two peers keep their order when the other one becomes the connected peer", "",
    Bursting) {
  TestType factory;
  TwoPeers peers(factory);
  peers.connect_to_peer(0);
  peers.send(20);
  peers.receive_all();

  peers.send(20);
  peers.connect_to_peer(1);
  peers.send(20);
  peers.receive();
  peers.send(20);
  SECTION("") {}
  SECTION("and back at once") {
    peers.connect_to_peer(0);
    peers.send(20);
    peers.receive();
    peers.send(20);
  }
  SECTION("and back while there is much to read") {
    for (int i = 0; i < 8; ++i) peers.receive();
    peers.connect_to_peer(0);
    peers.send(20);
    peers.receive();
    peers.send(20);
  }

  peers.receive_all();
}

TEMPLATE_LIST_TEST_CASE(
    "a peer that was silent for long is heard soon beside a busy connected peer", "", Bursting) {
  TestType factory;
  TwoPeers peers(factory);
  peers.connect_to_peer(0);
  peers.listen_to(0, 4000);
  REQUIRE(peers.received(0) >= 3990);

  peers.send_one(1);

  SECTION("while the connected peer goes on") {
    peers.listen_to(0, 2 * 128);
  }
  SECTION("and sooner when the connected peer falls silent, too") {
    for (int i = 0; i < 64 + 2 * 8; ++i) peers.receive_one();
  }
  CHECK(peers.received(1) == 1);
}

// This peer's packets are in a socket that is read empty while more arrive in it.
TEMPLATE_LIST_TEST_CASE(
    "a flood into one socket while the connected peer changes delays other peers only briefly", "",
    Bursting) {
  TestType factory;
  TwoPeers peers(factory);
  SECTION("into the common socket") {
    peers.connect_to_peer(0);
  }
  SECTION("into the socket of the last connected peer") {
    peers.connect_to_peer(1);
    for (int i = 0; i < 32; ++i) peers.receive_one();
    peers.connect_to_peer(0);
  }

  peers.flood(1);
  peers.send_one(0);
  for (int i = 0; i < 4 * (1 << 14) / 8 && peers.received(0) == 0; ++i) {
    peers.flood(1);
    peers.receive_eight();
  }

  CHECK(peers.received(0) == 1);
}

}  // namespace
}  // namespace pullman::nic::contract
