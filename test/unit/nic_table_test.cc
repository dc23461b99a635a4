#include "engine/nics/nic_table.h"

#include <catch2/catch.hpp>

#include "engine_parts.h"

namespace pullman::engine {
namespace {

wire::Hello described(const NicTable& table) {
  wire::Hello hello;
  table.describe(table.announced(), hello);
  return hello;
}

}  // namespace

TEST_CASE(
    "HELLO announces as many NICs as fit: eight with IPv4, four with IPv6, one opaque address") {
  CHECK(FakeNics(devices(8, ipv4)).table.announced() == 8);
  CHECK(FakeNics(devices(3, ipv6)).table.announced() == 3);
  CHECK(FakeNics(devices(8, ipv6)).table.announced() == 4);
  CHECK(FakeNics(devices(8, longest_opaque)).table.announced() == 1);
}

TEST_CASE("the NICs that HELLO announces fit into its fixed length (wire.md 5.5)") {
  const auto address = GENERATE(&ipv4, &ipv6, &longest_opaque);
  const FakeNics nics(devices(8, address));
  wire::Hello hello = described(nics.table);
  hello.called = hello.nics[0].command;

  CHECK(hello.nic_count == nics.table.announced());
  CHECK(wire::encoded_bytes(hello) <= kHelloBodyBytes);
}

TEST_CASE("a NIC that was added is announced when the announcement is made again") {
  FakeNics nics(1);
  nics.table.put(1, nics.open(device("late", ipv4(2))));
  CHECK(nics.table.announced() == 1);

  nics.table.announce_again();
  CHECK(nics.table.announced() == 2);
}

TEST_CASE("all addresses of a NIC, and its last resort, have the number of its first address") {
  const FakeNics nics({device("eth0", ipv4(1)), device("eth1", ipv4(2)), device("eth1", ipv4(3)),
                       stream_device("eth0", ipv4(1))});
  const wire::Hello hello = described(nics.table);

  CHECK(hello.nics[0].device == 0);
  CHECK(hello.nics[1].device == 1);
  CHECK(hello.nics[2].device == 1);
  CHECK(hello.nics[3].device == 0);
  CHECK(hello.nics[3].stream);
}

TEST_CASE("the second address of a NIC is a further one; the stream beside it is not") {
  const FakeNics nics({device("eth0", ipv4(1)), device("eth1", ipv4(2)), device("eth0", ipv4(3)),
                       stream_device("eth1", ipv4(2))});

  CHECK_FALSE(nics.table.is_further_address(0));
  CHECK_FALSE(nics.table.is_further_address(1));
  CHECK(nics.table.is_further_address(2));
  CHECK_FALSE(nics.table.is_further_address(3));
}

TEST_CASE("two addresses of one NIC are not several NICs; another NIC or a stream makes several") {
  const FakeNics nics({device("eth0", ipv4(1)), device("eth0", ipv4(2)), device("eth1", ipv4(3))});
  CHECK_FALSE(nics.table.several_nics(2));
  CHECK(nics.table.several_nics(3));

  const FakeNics stream({device("eth0", ipv4(1)), stream_device("eth0", ipv4(1))});
  CHECK(stream.table.several_nics(2));
}

TEST_CASE("a stream is the last resort, unless the first NIC is one itself") {
  const FakeNics beside({device("eth0", ipv4(1)), stream_device("eth1", ipv4(2))});
  CHECK(beside.table.stream_channels() == (beside.table.channel(1, ChannelKind::kCommand).mark() |
                                           beside.table.channel(1, ChannelKind::kData).mark()));

  const FakeNics alone({stream_device("eth0", ipv4(1)), stream_device("eth1", ipv4(2))});
  CHECK(alone.table.stream_channels() == 0);
}

TEST_CASE("a NIC is in trouble while its link is down or it is drained, and other NICs are not") {
  FakeNics nics(3);
  nics.table.set_link(1, false);
  nics.table.set_drained(0b010, true);
  CHECK(nics.table.in_trouble(1));
  CHECK_FALSE(nics.table.in_trouble(0));
  CHECK_FALSE(nics.table.in_trouble(2));

  nics.table.set_link(1, true);
  CHECK(nics.table.links_down() == 0);
  CHECK(nics.table.in_trouble(1));

  nics.table.set_drained(0b010, false);
  CHECK_FALSE(nics.table.in_trouble(1));
}

TEST_CASE("an address that a drained NIC gains is drained, too") {
  FakeNics nics(2);
  nics.table.set_drained(nics.table.modules_named("nic1"), true);

  nics.table.put(2, nics.open(device("nic1", ipv4(9))));
  nics.table.put(3, nics.open(device("nic3", ipv4(10))));

  CHECK(nics.table.drained() == 0b0110);
}

TEST_CASE(
    "a slot whose state is forgotten has nothing to flush and its link up, but stays drained") {
  FakeNics nics(2);
  for (const std::size_t slot : {0, 1}) {
    nics.table.note_posted(nics.table.channel(slot, ChannelKind::kData));
    nics.table.set_link(slot, false);
  }
  nics.table.set_drained(0b11, true);

  nics.table.forget_state(1);

  CHECK(nics.table.links_down() == 0b01);
  CHECK(nics.table.drained() == 0b11);
  CHECK(nics.table.has_posted());
  nics.table.forget_state(0);
  CHECK_FALSE(nics.table.has_posted());
}

TEST_CASE("two slots that are swapped exchange their ports, which take their new numbers") {
  FakeNics nics(3);
  nics.table.swap(0, 2);

  CHECK(nics.table.address_of(0) == nics[2].command->address());
  CHECK(nics.table.address_of(2) == nics[0].command->address());
  for (std::size_t slot = 0; slot < 3; ++slot) {
    for (const ChannelKind kind : {ChannelKind::kCommand, ChannelKind::kData}) {
      const std::size_t place = NicTable::place_of(slot, kind);
      CHECK(&nics.table.at(place) == &nics.table.channel(slot, kind));
      CHECK(nics.table.channel(slot, kind).mark() == std::uint32_t{1} << place);
    }
  }
}

TEST_CASE("a slot that gets a drained NIC's ports by a swap is drained") {
  FakeNics nics({device("eth0", ipv4(1)), device("eth1", ipv4(2)), device("eth1", ipv4(3))});
  nics.table.set_drained(nics.table.modules_named("eth1"), true);

  nics.table.swap(0, 2);

  CHECK((nics.table.drained() & 0b001) != 0);
}

TEST_CASE("new ports of a slot take its places in the row, and the old ones are returned") {
  FakeNics nics(2);
  const auto before = nics.table.put(1, nics.open(device("nic1", ipv4(9))));

  REQUIRE(before != nullptr);
  CHECK(before->device().address == ipv4(2));
  CHECK(nics.table.size() == 2);
  CHECK(nics.table.address_of(1) == nics[2].command->address());
  CHECK(&nics.table.at(1) == &nics.table.channel(1, ChannelKind::kCommand));
}

TEST_CASE("an address is called from the working NIC that reaches it best") {
  FakeNics nics(3);
  CHECK(nics.table.module_for(ipv4(50)) == 0);

  nics[1].command->reached = nics[2].command->reached = nic::Reach::kDirect;
  CHECK(nics.table.module_for(ipv4(50)) == 1);

  nics.table.set_link(1, false);
  CHECK(nics.table.module_for(ipv4(50)) == 2);
  nics.table.set_drained(0b100, true);
  CHECK(nics.table.module_for(ipv4(50)) == 0);

  nics[0].command->reached = nic::Reach::kNone;
  CHECK(nics.table.module_for(ipv4(50)) == 1);
}

TEST_CASE("an address is never called from a stream if the first NIC is not a stream") {
  FakeNics nics({device("eth0", ipv4(1)), stream_device("eth1", ipv4(2))});
  nics[1].command->reached = nic::Reach::kDirect;

  CHECK(nics.table.module_for(ipv4(50)) == 0);
}

TEST_CASE("a HELLO is for the NIC whose command address it names, and for none if there is none") {
  FakeNics nics(3);
  wire::Hello hello;
  hello.called = nics[2].command->address();
  CHECK(nics.table.module_called(hello) == std::uint8_t{2});

  hello.called = nics[2].data->address();
  CHECK(nics.table.module_called(hello) == std::nullopt);
}

TEST_CASE("a HELLO to a NIC that is not announced is answered by one that is") {
  FakeNics nics(devices(8, ipv6));
  nics[2].command->reached = nic::Reach::kDirect;
  wire::Hello hello;
  hello.called = nics[6].command->address();

  CHECK(nics.table.module_called(hello) == std::uint8_t{2});
}

TEST_CASE("an address of this host leads here if a process on another host claims it") {
  FakeNics nics(2);
  nics[1].command->own = {ipv4(30)};

  CHECK(nics.table.leads_here(FakeNics::kHost + 1, ipv4(30)));
  CHECK_FALSE(nics.table.leads_here(FakeNics::kHost + 1, ipv4(31)));
  CHECK_FALSE(nics.table.leads_here(FakeNics::kHost, ipv4(30)));
  CHECK_FALSE(nics.table.leads_here(0, ipv4(30)));  // the host is not known
}

TEST_CASE("a peer's NIC of which a channel leads here loses its addresses but not its number") {
  FakeNics nics(1);
  nics[0].command->own = {ipv4(30)};
  std::array<wire::NicInfo, 3> theirs;
  theirs[0].command = theirs[0].data = ipv4(29);
  theirs[1].command = theirs[1].data = ipv4(30);
  theirs[2].command = ipv4(31);
  theirs[2].data = ipv4(30);

  nics.table.forget_own_addresses(FakeNics::kHost + 1, theirs);

  CHECK(theirs[0].command == ipv4(29));
  CHECK(theirs[1].command == nic::Address{});
  CHECK(theirs[2].command == nic::Address{});
  CHECK(theirs[2].data == nic::Address{});
}

TEST_CASE("peers are told the address of the first NIC that leads out of this host") {
  nic::Device loopback = device("lo", ipv4(127));
  loopback.loopback = true;
  CHECK(FakeNics({loopback, device("eth0", ipv4(1))}).table.address().bytes[0] == std::byte{1});
  CHECK(FakeNics({loopback}).table.address().bytes[0] == std::byte{127});
}

TEST_CASE("a channel is flushed each turn until its port has taken what waits") {
  FakeNics nics(1);
  channel::PacketPool pool(4, 1472);
  channel::Packet& packet = *pool.take(64);
  packet.used = 40;
  packet.state = channel::PacketState::kInFlight;
  Channel& data = nics.table.channel(0, ChannelKind::kData);
  data.post(packet, 7);
  nics.table.note_posted(data);

  nics[0].data->room = 0;
  nics.table.flush();
  CHECK(nics.table.has_posted());
  CHECK_FALSE(nics.table.moved());

  nics[0].data->room = 1;
  nics.table.flush();
  CHECK_FALSE(nics.table.has_posted());
  CHECK(nics.table.moved());
  nics.table.begin_turn();
  CHECK_FALSE(nics.table.moved());
  pool.give_back(packet);
}

TEST_CASE("the relay is called by the address of any NIC, and only by addresses of its kind") {
  auto all = devices(2, ipv4);
  nic::Device relay = device("relay", nic::relayed(ipv4(1)));
  relay.relayed = relay.stream = true;
  all.push_back(relay);
  const FakeNics nics(all);
  wire::Hello hello = described(nics.table);

  hello.called = nic::relayed(nics.table.address_of(1));
  CHECK(nics.table.module_called(hello) == 2);
  hello.called = nics.table.address_of(1);
  CHECK(nics.table.module_called(hello) == 1);
  hello.called = nic::relayed(nic::with_port(nics.table.address_of(1), 9));
  CHECK_FALSE(nics.table.module_called(hello).has_value());
  CHECK(nics.table.module_for(nic::relayed(ipv4(9))) == 2);
  CHECK(nics.table.module_for(ipv4(9)) != 2);
  CHECK_FALSE(nic::is_relayed(nics.table.address()));
}

}  // namespace pullman::engine
