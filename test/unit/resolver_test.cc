#include "engine/nics/resolver.h"

#include <catch2/catch.hpp>

#include "engine_parts.h"

namespace pullman::engine {
namespace {

struct Asker {
  Peer& add() {
    Peer& peer = peers.add();
    peer.phase = Phase::kResolving;
    return peer;
  }
  // Adds a peer that has called us.
  Peer& add_caller() {
    Peer& peer = add();
    peer.said = std::make_unique<PendingHello>();
    peer.said->hello.nics[0].command = ipv4(20);
    peer.said->hello.nics[1].command = ipv4(21);
    return peer;
  }
  std::uint64_t last_cookie() { return nics[0].command->asked.back().cookie; }
  Resolver::Purpose purpose_of(std::uint64_t cookie, ChannelKind kind = ChannelKind::kCommand) {
    return resolver.purpose_of(kind, cookie);
  }

  FakeNics nics{2};
  FakePeers peers{nics.table};
  Resolver resolver{peers.table(), nics.table};
};

}  // namespace

TEST_CASE("a resolution for a rail finds that rail of that peer") {
  Asker asker;
  asker.add();
  Peer& peer = asker.add();
  asker.resolver.resolve(peer.home, ChannelKind::kData, ipv4(9));

  REQUIRE(asker.nics[0].data->asked.size() == 1);
  CHECK(asker.nics[0].data->asked[0].address == ipv4(9));
  const auto purpose = asker.purpose_of(asker.nics[0].data->asked[0].cookie, ChannelKind::kData);
  CHECK(purpose.peer == &peer);
  CHECK(purpose.rail == &peer.home);
  CHECK_FALSE(purpose.is_answer);
}

TEST_CASE("a resolution that comes from another channel than was asked is ignored") {
  Asker asker;
  asker.resolver.resolve(asker.add().home, ChannelKind::kCommand, ipv4(9));

  CHECK(asker.purpose_of(asker.last_cookie(), ChannelKind::kData).peer == nullptr);
}

TEST_CASE("a resolution for a peer that has ended is ignored") {
  Asker asker;
  Peer& peer = asker.add();
  asker.resolver.resolve(peer.home, ChannelKind::kCommand, ipv4(9));
  peer.phase = Phase::kGone;

  CHECK(asker.purpose_of(asker.last_cookie()).peer == nullptr);
}

TEST_CASE("a resolution for a peer whose slot another has by now is ignored") {
  Asker asker;
  Peer& before = asker.add();
  asker.resolver.resolve(before.home, ChannelKind::kCommand, ipv4(9));
  const std::uint64_t cookie = asker.last_cookie();
  asker.peers.table().remove(before);
  CHECK(asker.purpose_of(cookie).peer == nullptr);

  Peer& after = asker.add();
  REQUIRE(after.id.index == 0);
  CHECK(asker.purpose_of(cookie).peer == nullptr);
}

TEST_CASE("an answer is stale if the rail's addresses have changed since it was asked for") {
  Asker asker;
  Rail& rail = asker.add().home;
  asker.resolver.resolve(rail, ChannelKind::kCommand, ipv4(9));
  CHECK(rail.is_resolving(ChannelKind::kCommand));
  CHECK_FALSE(rail.is_resolving(ChannelKind::kData));
  Resolver::note_moved(rail);
  asker.resolver.resolve(rail, ChannelKind::kData, ipv4(10));

  CHECK_FALSE(Resolver::take_answer(rail, ChannelKind::kCommand));
  CHECK_FALSE(rail.is_resolving(ChannelKind::kCommand));
  CHECK(Resolver::take_answer(rail, ChannelKind::kData));

  asker.resolver.resolve(rail, ChannelKind::kCommand, ipv4(10));
  CHECK(Resolver::take_answer(rail, ChannelKind::kCommand));
}

TEST_CASE("a rail that has left its NIC waits for no answer") {
  Asker asker;
  Rail& rail = asker.add().home;
  asker.resolver.resolve(rail, ChannelKind::kCommand, ipv4(9));
  Resolver::note_moved(rail);
  Resolver::drop_answers(rail);

  CHECK_FALSE(rail.is_resolving(ChannelKind::kCommand));
  asker.resolver.resolve(rail, ChannelKind::kCommand, ipv4(9));
  CHECK(Resolver::take_answer(rail, ChannelKind::kCommand));
}

TEST_CASE("a resolution for a slot that never existed is ignored") {
  Asker asker;
  asker.resolver.resolve_stateless_reply(0, ipv4(9));

  CHECK(asker.last_cookie() == Resolver::kStatelessReplyCookie);
  CHECK(asker.purpose_of(asker.last_cookie()).peer == nullptr);
}

TEST_CASE("a caller's address is resolved by the NIC that it called, for the answer to it") {
  Asker asker;
  Peer& peer = asker.add_caller();
  peer.said->hello.nic = 1;

  asker.resolver.resolve_answer(peer);

  CHECK(asker.nics[0].command->asked.back().address == ipv4(21));
  const auto purpose = asker.purpose_of(asker.last_cookie());
  CHECK(purpose.peer == &peer);
  CHECK(purpose.rail == nullptr);
  CHECK(purpose.is_answer);
}

TEST_CASE("a resolution from before a caller's latest HELLO is not current") {
  Asker asker;
  Peer& peer = asker.add_caller();
  asker.resolver.resolve_answer(peer);
  const std::uint64_t before = asker.last_cookie();
  asker.resolver.resolve_answer(peer);

  CHECK_FALSE(asker.purpose_of(before).is_answer);
  CHECK(asker.purpose_of(before).rail == nullptr);
  CHECK(asker.purpose_of(asker.last_cookie()).is_answer);
}

TEST_CASE("a resolution for a caller that has proved itself meanwhile is not current") {
  Asker asker;
  Peer& peer = asker.add_caller();
  asker.resolver.resolve_answer(peer);
  peer.said.reset();

  CHECK_FALSE(asker.purpose_of(asker.last_cookie()).is_answer);
}

TEST_CASE("resolutions are pending until each NIC has answered or is replaced") {
  Asker asker;
  asker.resolver.resolve(asker.add().home, ChannelKind::kCommand, ipv4(9));
  asker.resolver.resolve(asker.add().home, ChannelKind::kCommand, ipv4(9));
  asker.resolver.resolve_stateless_reply(1, ipv4(9));
  CHECK(asker.resolver.any_pending());

  asker.resolver.note_answered(1);
  asker.resolver.note_answered(0);
  CHECK(asker.resolver.any_pending());

  asker.resolver.forget(1);
  CHECK(asker.resolver.any_pending());
  asker.resolver.forget(0);
  CHECK_FALSE(asker.resolver.any_pending());
  asker.resolver.forget(0);  // nothing is left to forget
  CHECK_FALSE(asker.resolver.any_pending());
}

TEST_CASE(
    "of a rail's two channels one that is resolved, or being resolved, is not asked for again") {
  Asker asker;
  Peer& peer = asker.add();
  give_rails(peer);
  peer.rails->theirs.resize(2);
  peer.rails->theirs[1].command = ipv4(21);
  peer.rails->theirs[1].data = ipv4(22);
  peer.home.there = 1;
  peer.home.data_to = 5;

  asker.resolver.resolve_both(peer.home);
  asker.resolver.resolve_both(peer.home);

  REQUIRE(asker.nics[0].command->asked.size() == 1);
  CHECK(asker.nics[0].command->asked[0].address == ipv4(21));
  CHECK(asker.nics[0].data->asked.empty());
}

TEST_CASE("a rail that is released gives its destinations back to its ports once") {
  Asker asker;
  Peer& peer = asker.add();
  peer.home.command_to = 4;
  peer.home.data_to = 5;

  asker.resolver.release(peer.home);
  asker.resolver.release(peer.home);

  CHECK(asker.nics[0].command->forgotten == std::vector<nic::Destination>{4});
  CHECK(asker.nics[0].data->forgotten == std::vector<nic::Destination>{5});
  CHECK_FALSE(peer.home.resolved());
}

}  // namespace pullman::engine
