#include "engine/send/packet_sender.h"

#include <catch2/catch.hpp>

#include "engine_parts.h"

namespace pullman::engine {
namespace {

// A peer with credit, to which packets are sent.
struct Sender {
  explicit Sender(bool checksum = false) : config(with(checksum)) {
    peer.phase = Phase::kConnected;
    peer.theirs = {4, 9};
    peer.home.command_to = 7;
    peer.home.data_to = 8;
    peer.home.command_bytes = 600;
    peer.home.link.handle_hello(300, 64);
  }
  static Config with(bool checksum) {
    Config config;
    config.checksum = checksum;
    config.tiny_bytes = 100;
    return config;
  }
  ~Sender() {
    for (channel::Packet* packet : taken) {
      if (packet->in_channel) peer.home.nic->channel(packet->channel).withdraw(*packet);
      if (packet->state == channel::PacketState::kInFlight) peer.home.link.abandon(*packet);
      peers.resources.packets.give_back(*packet);
    }
  }
  channel::Packet& packet(std::size_t bytes) {
    channel::Packet& made = *peers.resources.packets.take(1400);
    std::memset(made.bytes, 0, bytes);
    made.used = static_cast<std::uint32_t>(bytes);
    taken.push_back(&made);
    return made;
  }
  void post(channel::Packet& packet, Leaves how, ChannelKind kind = ChannelKind::kData) {
    sender.post(now, peer.home, packet, nics.table.channel(0, kind), wire::PacketType::kSequenced,
                how);
  }
  ChannelKind kind_for(const channel::Packet& packet) {
    return sender.kind_for(peer.home, packet, data(peer.home));
  }
  wire::PacketHeader header_of(const FakePort::Sent& sent) const {
    wire::PacketHeader header;
    REQUIRE(wire::decode(sent.bytes, header) == wire::Verdict::kAccepted);
    return header;
  }

  Config config;
  FakeNics nics{1};
  FakePeers peers{nics.table};
  Instant now{std::chrono::seconds(1)};
  CreditAllocator credits{nics.table, now};
  AckScheduler acks{peers.resources.config, peers.resources.inbox_counters, peers.resources.stats,
                    credits};
  PacketSender sender{config, peers.table(), nics.table, credits, acks};
  Peer& peer = peers.add();
  std::vector<channel::Packet*> taken;
};

constexpr std::size_t kTiny = wire::kHeaderBytes + wire::kMessageBytes + 100;  // the longest

}  // namespace

TEST_CASE("a tiny packet takes the command channel, a longer one the data channel") {
  Sender sender;
  CHECK(sender.kind_for(sender.packet(kTiny)) == ChannelKind::kCommand);
  CHECK(sender.kind_for(sender.packet(kTiny + 1)) == ChannelKind::kData);

  sender.peer.home.command_bytes = kTiny - 1;
  CHECK(sender.kind_for(sender.packet(kTiny)) == ChannelKind::kData);
}

TEST_CASE("a tiny packet leaves behind those that wait in the data channel, not ahead of them") {
  Sender sender;
  sender.nics[0].data->room = 0;
  sender.post(sender.packet(1000), Leaves::kInBatch);

  CHECK(sender.kind_for(sender.packet(kTiny)) == ChannelKind::kData);
}

TEST_CASE("a packet of a batch waits until its channel is flushed") {
  Sender sender;
  sender.post(sender.packet(500), Leaves::kInBatch);
  CHECK(sender.nics.table.has_posted());
  CHECK(sender.nics[0].data->sent.empty());

  sender.nics.table.flush();
  REQUIRE(sender.nics[0].data->sent.size() == 1);
  CHECK(sender.nics[0].data->sent[0].to == sender.peer.home.data_to);
}

TEST_CASE("a packet that leaves alone leaves at once, unless others wait or the port refuses it") {
  Sender sender;
  sender.post(sender.packet(500), Leaves::kAlone, ChannelKind::kCommand);
  REQUIRE(sender.nics[0].command->sent.size() == 1);
  CHECK(sender.nics[0].command->sent[0].to == sender.peer.home.command_to);
  CHECK_FALSE(sender.nics.table.has_posted());

  sender.nics[0].command->room = 0;
  sender.post(sender.packet(501), Leaves::kAlone, ChannelKind::kCommand);
  CHECK(sender.nics.table.has_posted());

  sender.nics[0].command->room = 9;
  sender.post(sender.packet(502), Leaves::kAlone, ChannelKind::kCommand);
  CHECK(sender.nics[0].command->sent.size() == 1);
  sender.nics.table.flush();
  REQUIRE(sender.nics[0].command->sent.size() == 3);
  CHECK(sender.nics[0].command->sent[1].bytes.size() == 501);
}

TEST_CASE("packets are numbered in sequence, addressed to the peer, and carry its credit") {
  Sender sender;
  sender.post(sender.packet(500), Leaves::kAlone);
  sender.post(sender.packet(500), Leaves::kAlone);
  const auto first = sender.header_of(sender.nics[0].data->sent[0]);
  const auto second = sender.header_of(sender.nics[0].data->sent[1]);

  CHECK(second.number == first.number + 1);
  CHECK(first.to == sender.peer.theirs);
  CHECK(first.credit == 512);
  CHECK_FALSE(first.has(wire::kFlagChecksum));
  CHECK(sender.peer.home.link.in_flight() == 2);
}

TEST_CASE(
    "the bytes of a peer's packets are counted, those of probes not, and from 0 for the next "
    "peer") {
  Sender sender;
  sender.post(sender.packet(500), Leaves::kAlone);
  channel::Packet& probe = sender.packet(100);
  probe.is_probe = true;
  sender.post(probe, Leaves::kAlone);
  sender.post(sender.packet(300), Leaves::kInBatch);

  CHECK(sender.peers.table().tally_of(sender.peer).bytes_sent == 800);
  CHECK(sender.peers.table().tally_of(sender.peers.add()).bytes_sent == 0);
}

TEST_CASE("a stall for credit counts once until something is sent") {
  Tally tally;
  tally.note_credit_stall(0);
  tally.note_credit_stall(0);
  CHECK(tally.credit_stalls == 1);
  tally.note_credit_stall(1500);
  CHECK(tally.credit_stalls == 2);
}

TEST_CASE("with checksums a packet is sealed when it is complete") {
  Sender sender(true);
  sender.post(sender.packet(500), Leaves::kAlone);
  const auto header = sender.header_of(sender.nics[0].data->sent[0]);

  CHECK(header.has(wire::kFlagChecksum));
  CHECK(wire::checksum_holds(sender.nics[0].data->sent[0].bytes, header));
}

TEST_CASE("an ACK that is due is piggybacked on a packet that leaves, and its timer stops") {
  Sender sender;
  wire::PacketHeader arrived;
  arrived.number = 300;
  sender.peer.home.link.handle_arrival(sender.now, arrived);
  sender.acks.schedule(sender.now, sender.peer.home);
  REQUIRE(sender.acks.next_due() != kNever);

  sender.post(sender.packet(500), Leaves::kAlone);

  CHECK(sender.header_of(sender.nics[0].data->sent[0]).cumulative == 301);
  CHECK(sender.acks.next_due() == kNever);
}

TEST_CASE("a packet on a rail without a due ACK does not count as piggybacking one") {
  Sender sender;
  sender.post(sender.packet(500), Leaves::kAlone);

  CHECK(sender.peers.resources.stats.acks_piggybacked == 0);
}

TEST_CASE("a large CHECK takes the data channel, a small one the command channel") {
  Sender sender;
  std::vector<std::byte> bytes(64);
  sender.sender.send_check(sender.peer.home, wire::CheckSize::kLargest, bytes);
  CHECK(sender.nics[0].data->sent.size() == 1);
  CHECK(sender.nics[0].command->sent.empty());

  sender.sender.send_check(sender.peer.home, wire::CheckSize::kSmallest, bytes);
  CHECK(sender.nics[0].command->sent.size() == 1);
}

TEST_CASE("a full channel has room only if its port takes some of the packets that wait") {
  Sender sender;
  sender.nics[0].data->room = 0;
  channel::PacketPool pool(Channel::kBatch, 1472);
  std::vector<channel::Packet*> waiting;
  Channel& channel = data(sender.peer.home);
  while (channel.room() != 0) {
    channel::Packet& packet = *pool.take(64);
    packet.used = 40;
    packet.state = channel::PacketState::kInFlight;
    channel.post(packet, 8);
    waiting.push_back(&packet);
  }
  CHECK(with_room(sender.peer.home, ChannelKind::kData) == nullptr);

  sender.nics[0].data->room = 1;
  CHECK(with_room(sender.peer.home, ChannelKind::kData) == &channel);
  for (channel::Packet* packet : waiting) {
    if (packet->in_channel) channel.withdraw(*packet);
    pool.give_back(*packet);
  }
}

}  // namespace pullman::engine
