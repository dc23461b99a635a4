// Scenarios: peers that no NIC reaches, and processes that relay to them.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <set>
#include <utility>

#include "sim/rail_scene.h"

namespace pullman::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kFivePercent = 50'000;

std::string name_of(std::size_t host) {
  return nic::to_string(address_of({static_cast<std::uint8_t>(host), Channel::kCommand}));
}
std::string default_by(std::size_t host) {
  return fmt::format("default via {}", name_of(host));
}
std::string to_by(std::size_t host, std::size_t next) {
  const auto address = address_of({static_cast<std::uint8_t>(host), Channel::kCommand});
  return fmt::format("{}/32 via {}", nic::host_string(address), name_of(next));
}

// Hosts of which some have a link in common. What else there is between two, no packet passes.
class RelayScene : public RailScene {
 public:
  using Links = std::set<std::pair<std::size_t, std::size_t>>;

  RelayScene(const std::vector<std::string>& relays, Links links, const Tweak& tweak = {})
      : RailScene(std::vector<std::size_t>(relays.size(), 1), tweak,
                  [&, host = std::size_t{0}](NodePlan& plan) mutable {
                    plan.relay = relays[host++];
                    plan.config.peer_timeout = seconds(2);
                  }),
        links_(std::move(links)) {
    network().set_reach_rule([this](Endpoint from, Endpoint to) {
      return from.host == to.host || linked(from.host, to.host) ? nic::Reach::kDirect
                                                                : nic::Reach::kNone;
    });
  }

  void link(std::size_t a, std::size_t b) { links_.emplace(a, b); }
  void unlink(std::size_t a, std::size_t b) { links_.erase({a, b}); }

  // The hosts have found their next hops.
  void settle() { run_for(milliseconds(300)); }
  void lose_on_all_wires(std::uint64_t chance) {
    for (const auto& [a, b] : links_)
      network().wire(a, b).loss = network().wire(b, a).loss = chance;
  }

  // Connects as Context::connect() does.
  PeerId call(std::size_t from, std::size_t to) {
    const auto address = node(from).relay().address_to_call(node(to).address());
    REQUIRE(address.has_value());
    const auto connected = engine(from).connect(node(from).local_now(), *address);
    REQUIRE(connected.status == Status::kOk);
    node(from).touched();
    return connected.peer;
  }
  // The same, until both are connected. Neighbours that connect to relay are not meant.
  Couple meet(std::size_t from, std::size_t to) {
    Couple couple{.there = call(from, to), .back = {}};
    std::optional<PeerId> accepted;
    REQUIRE(run_until([&] {
      while (!accepted) {
        const auto caller = accept(to);
        if (!caller) return false;
        if (engine(to).neighbours().is_at(*caller, node(from).address())) accepted = caller;
      }
      return accepted && state(from, couple.there) == PeerState::kConnected &&
             state(to, *accepted) == PeerState::kConnected;
    }));
    couple.back = *accepted;
    return couple;
  }
  PeerState state(std::size_t host, PeerId peer) {
    return engine(host).inspector().peer_state(peer);
  }
  bool is_relayed(std::size_t host, PeerId peer) {
    const auto views = rails(host, peer);
    return std::all_of(views.begin(), views.end(),
                       [](const RailView& view) { return view.nic == "relay"; });
  }

  // Sends messages of many sizes both ways, which must arrive once each, in the order of sending.
  void exchange(std::size_t a, std::size_t b, Couple couple, std::size_t count) {
    struct Way {
      std::size_t from;
      std::size_t to;
      PeerId there;
      PeerId back;
    };
    const Way ways[] = {{a, b, couple.there, couple.back}, {b, a, couple.back, couple.there}};
    std::vector<std::pair<Act*, std::size_t>> receives;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t size = i % 10 == 9 ? 100'000 : i * 37 % 3000;
      for (const Way& way : ways) {
        receives.emplace_back(&receive(way.to, way.back, 0, 100'000, ~Tag{0}), i);
        send(way.from, way.there, i, size);
      }
    }
    const bool all = run_until([&] {
      return std::all_of(receives.begin(), receives.end(),
                         [](const auto& one) { return one.first->done(); });
    });
    INFO((all ? "" : dump()));
    REQUIRE(all);
    for (const auto& [act, i] : receives) {
      INFO(i);
      CHECK(holds(*act, i, i % 10 == 9 ? 100'000 : i * 37 % 3000));
    }
    Act& more_there = receive(b, couple.back, 0, 1, ~Tag{0});
    Act& more_back = receive(a, couple.there, 0, 1, ~Tag{0});
    run_for(milliseconds(200));
    CHECK_FALSE((more_there.done() || more_back.done()));
    for (Act* act : {&more_there, &more_back}) {
      const std::size_t host = act == &more_there ? b : a;
      CHECK(engine(host).matching().cancel(act->request));
    }
  }

 private:
  bool linked(std::size_t a, std::size_t b) const {
    return links_.contains({a, b}) || links_.contains({b, a});
  }

  Links links_;
};

std::uint64_t dropped(const Stats& stats) {
  return stats.relay_dropped_loop + stats.relay_dropped_too_far + stats.relay_dropped_no_way +
         stats.relay_dropped_malformed;
}

TEST_CASE(
    "two peers without a common network exchange messages through a third, once and in order") {
  RelayScene scene({default_by(1), "on", default_by(1)}, {{0, 1}, {1, 2}});
  scene.settle();
  scene.lose_on_all_wires(kFivePercent);
  const auto couple = scene.meet(0, 2);

  scene.exchange(0, 2, couple, 200);

  CHECK(scene.is_relayed(0, couple.there));
  CHECK(scene.stats(1).relay_forwarded > 400);
  CHECK(dropped(scene.stats(1)) == 0);
  CHECK(scene.node(0).relay().next_hop(nic::relayed(scene.node(2).address())) == name_of(1));
}

TEST_CASE(
    "what is encrypted from end to end passes a relay, and one without the key is passed by") {
  const bool has_key = GENERATE(true, false);
  RelayScene scene({default_by(1), "on", default_by(1)}, {{0, 1}, {1, 2}},
                   [&, host = 0](NodePlan& plan) mutable {
                     plan.protection = wire::Protection::kEncrypt;
                     plan.job_keys = {host++ == 1 && !has_key ? 8u : 7u};
                   });
  scene.settle();
  if (has_key) return scene.exchange(0, 2, scene.meet(0, 2), 20);
  Act& send = scene.send(0, scene.call(0, 2), 1, 100'000);
  REQUIRE(scene.run_until_done(send));
  CHECK(send.status() == Status::kUnreachable);
  CHECK(scene.stats(1).relay_forwarded == 0);
}

TEST_CASE("packets pass two relays one after the other, and answers take the way back") {
  // The far end has no route: it knows where packets came from.
  RelayScene scene({default_by(1), to_by(3, 2), "on", "on"}, {{0, 1}, {1, 2}, {2, 3}});
  scene.settle();
  scene.lose_on_all_wires(kFivePercent);
  const auto couple = scene.meet(0, 3);

  scene.exchange(0, 3, couple, 100);

  CHECK(scene.stats(1).relay_forwarded > 100);
  CHECK(scene.stats(2).relay_forwarded > 100);
}

TEST_CASE("routes that lead in a ring pass a packet round once, and nothing storms") {
  constexpr std::size_t kUnrouted = 99;
  RelayScene scene({to_by(kUnrouted, 1), to_by(kUnrouted, 2), to_by(kUnrouted, 0)},
                   {{0, 1}, {1, 2}, {0, 2}});
  scene.settle();
  const auto unrouted =
      nic::relayed(address_of({static_cast<std::uint8_t>(kUnrouted), Channel::kCommand}));
  const auto called = scene.engine(0).connect(scene.node(0).local_now(), unrouted);
  Act& send = scene.send(0, called.peer, 1, 100'000);
  const std::uint64_t before = scene.network().counters().sent;

  REQUIRE(scene.run_until_done(send));

  CHECK(send.status() == Status::kUnreachable);
  CHECK(scene.stats(0).relay_dropped_loop > 5);
  std::uint64_t sent = 0;
  std::uint64_t forwarded = 0;
  for (std::size_t host = 0; host < 3; ++host) {
    sent += scene.stats(host).relay_sent;
    forwarded += scene.stats(host).relay_forwarded;
  }
  CHECK(forwarded > 10);
  CHECK(forwarded <= 2 * sent);  // no packet passes a host twice
  CHECK(scene.network().counters().sent - before < 1000);
}

TEST_CASE("a packet passes eight connections and no more") {
  constexpr std::size_t kUnrouted = 99;
  constexpr std::size_t kHosts = 11;
  std::vector<std::string> relays;
  RelayScene::Links links;
  for (std::size_t host = 0; host < kHosts; ++host) {
    relays.push_back(to_by(kUnrouted, (host + 1) % kHosts));
    links.emplace(host, (host + 1) % kHosts);
  }
  RelayScene scene(relays, links);
  scene.settle();
  const auto unrouted =
      nic::relayed(address_of({static_cast<std::uint8_t>(kUnrouted), Channel::kCommand}));
  const auto called = scene.engine(0).connect(scene.node(0).local_now(), unrouted);
  REQUIRE(scene.run_until_done(scene.send(0, called.peer, 1, 100'000)));

  const std::uint64_t sent = scene.stats(0).relay_sent;
  CHECK(sent > 0);
  CHECK(scene.stats(7).relay_forwarded == sent);
  CHECK(scene.stats(8).relay_dropped_too_far == sent);
  CHECK(scene.stats(8).relay_forwarded == 0);
}

TEST_CASE("direct and relayed peers are used at once, and a direct one never takes the relay") {
  RelayScene scene({default_by(1), "on", default_by(1)}, {{0, 1}, {1, 2}});
  scene.settle();
  const auto relayed = scene.meet(0, 2);
  const PeerId direct = scene.call(0, 1);
  REQUIRE(scene.run_until([&] { return scene.state(0, direct) == PeerState::kConnected; }));
  scene.run_for(milliseconds(100));
  const std::uint64_t before = scene.stats(0).relay_sent;
  for (Tag tag = 0; tag < 50; ++tag) {
    Act& act = scene.receive(1, kAnyPeer, tag, 10'000);
    scene.send(0, direct, tag, 10'000);
    REQUIRE(scene.run_until_done(act));
  }
  CHECK(scene.stats(0).relay_sent - before < 10);  // questions of liveness, at most
  scene.exchange(0, 2, relayed, 20);
  CHECK_FALSE(scene.is_relayed(0, direct));
  // There is no other way to the neighbour, which is no fault.
  REQUIRE(scene.rails(0, direct).size() == 2);
  CHECK(scene.rail(0, direct, 1).state == RailState::kDown);
  CHECK(scene.rail(0, direct, 1).check == RailFinding::kNotChecked);
}

TEST_CASE("an address that nothing reaches is known at once") {
  RelayScene scene({to_by(2, 1), "on", "on"}, {{0, 1}, {1, 2}});
  scene.settle();
  const auto to_call = [&](std::size_t from, std::size_t to) {
    return scene.node(from).relay().address_to_call(
        address_of({static_cast<std::uint8_t>(to), Channel::kCommand}));
  };
  CHECK(to_call(0, 1) == scene.node(1).address());
  CHECK(to_call(0, 2) == nic::relayed(scene.node(2).address()));
  CHECK_FALSE(to_call(0, 99).has_value());
  CHECK_FALSE(to_call(2, 99).has_value());
}

TEST_CASE("the relay carries on when a direct rail dies, and gives back when it returns") {
  RelayScene scene({default_by(1), "on", default_by(1)}, {{0, 1}, {1, 2}, {0, 2}});
  scene.settle();
  const auto couple = scene.meet(0, 2);
  REQUIRE(scene.run_until([&] { return scene.rails(0, couple.there).size() == 2; }));
  REQUIRE(scene.run_until(
      [&] { return scene.all_up(0, couple.there) && scene.all_up(2, couple.back); }));
  scene.run_for(milliseconds(100));
  const auto relay_carried = [&] { return scene.stats(1).relay_forwarded; };
  const std::uint64_t before = relay_carried();
  scene.exchange(0, 2, couple, 30);
  CHECK(relay_carried() - before < 10);

  scene.unlink(0, 2);
  scene.exchange(0, 2, couple, 30);
  CHECK(relay_carried() - before > 30);
  CHECK(scene.rail(0, couple.there, 0).state == RailState::kDown);

  scene.link(0, 2);
  REQUIRE(scene.run_until([&] { return scene.all_up(0, couple.there); }));
  scene.run_for(milliseconds(100));
  const std::uint64_t after = relay_carried();
  scene.exchange(0, 2, couple, 30);
  CHECK(relay_carried() - after < 10);
}

TEST_CASE("when the relay dies operations end with an error after peer_timeout") {
  RelayScene scene({default_by(1), "on", default_by(1)}, {{0, 1}, {1, 2}});
  scene.settle();
  const auto couple = scene.meet(0, 2);
  scene.exchange(0, 2, couple, 5);

  scene.node(1).end(true);
  Act& send = scene.send(0, couple.there, 1, 100'000);

  REQUIRE(scene.run_until_done(send, seconds(10)));
  CHECK(send.status() == Status::kUnreachable);
}

TEST_CASE("when a relay dies another one carries on, and operations go on") {
  RelayScene scene(
      {default_by(1) + "," + default_by(3), "on", default_by(1) + "," + default_by(3), "on"},
      {{0, 1}, {1, 2}, {0, 3}, {2, 3}});
  scene.settle();
  const auto couple = scene.meet(0, 2);
  scene.exchange(0, 2, couple, 5);

  scene.node(1).end(true);
  scene.exchange(0, 2, couple, 50);

  CHECK(scene.stats(3).relay_forwarded > 50);
}

TEST_CASE("a peer without a relay makes no rail of it, and what is sent to it goes direct") {
  RelayScene scene({default_by(1), "on", ""}, {{0, 1}, {0, 2}});
  scene.settle();
  const auto couple = scene.meet(0, 2);
  scene.exchange(0, 2, couple, 10);
  CHECK(scene.rails(0, couple.there).size() == 1);
  CHECK_FALSE(scene.is_relayed(0, couple.there));
}

TEST_CASE("a neighbour that sends what is no relayed packet is counted, and nothing else happens") {
  RelayScene scene({"on", ""}, {{0, 1}});
  const auto couple = scene.couple(1, 0);
  const std::vector<std::byte> nonsense(300, std::byte{0x5A});
  SendOptions options;
  options.space = relay::kSpace;
  const std::span<const std::byte> whole[] = {nonsense};
  Request request;
  for (int i = 0; i < 200; ++i) {
    scene.engine(1).sending().submit(
        scene.node(1).local_now(),
        {.peer = couple.there, .tag = 0, .segments = whole, .options = options}, request);
    scene.node(1).touched();
    REQUIRE(scene.run_until([&] { return request.done(); }));
  }
  REQUIRE(scene.run_until([&] { return scene.stats(0).relay_dropped_malformed == 200; }));
  CHECK(scene.stats(0).relay_received == 0);
}

TEST_CASE("a relay goes on after its program disconnects a neighbour in the middle of a packet") {
  RelayScene scene({"on", ""}, {{0, 1}});
  const auto first = scene.couple(1, 0);
  const std::vector<std::byte> nonsense(8000, std::byte{0x5A});
  SendOptions options;
  options.space = relay::kSpace;
  const std::span<const std::byte> whole[] = {nonsense};
  const auto pass = [&](PeerId peer, Request& request) {
    scene.engine(1).sending().submit(
        scene.node(1).local_now(), {.peer = peer, .tag = 0, .segments = whole, .options = options},
        request);
    scene.node(1).touched();
  };
  int long_ones = 0;
  scene.network().set_drop_rule([&](const Passing& passing) {
    return passing.from.host == 1 && passing.bytes.size() > 500 && ++long_ones > 2;
  });
  Request request;
  pass(first.there, request);
  REQUIRE(scene.run_until([&] { return long_ones > 2; }));
  scene.run_for(milliseconds(1));
  scene.network().set_drop_rule(nullptr);

  scene.engine(0).disconnect(scene.node(0).local_now(), first.back);
  scene.node(0).touched();
  REQUIRE(scene.run_until([&] { return request.done(); }));
  const auto again = scene.couple(1, 0);
  for (int i = 0; i < 200; ++i) {
    pass(again.there, request);
    REQUIRE(scene.run_until([&] { return request.done(); }));
  }

  const bool all = scene.run_until([&] { return scene.stats(0).relay_dropped_malformed == 200; });
  INFO(scene.stats(0).relay_dropped_malformed);
  CHECK(all);
}

TEST_CASE("an end that leaves delivers what the relay still carries") {
  RelayScene scene({default_by(1), "on", default_by(1)}, {{0, 1}, {1, 2}});
  scene.settle();
  const auto couple = scene.meet(0, 2);
  Act& receive = scene.receive(2, couple.back, 1, 100'000);
  scene.send(0, couple.there, 1, 100'000);

  scene.engine(0).neighbours().disconnect_relayed(scene.node(0).local_now());
  scene.node(0).touched();

  REQUIRE(scene.run_until([&] { return !scene.engine(0).neighbours().any_relayed(); }));
  REQUIRE(scene.run_until_done(receive));
  CHECK(Scene::holds(receive, 1, 100'000));
  CHECK(scene.state(0, scene.call(0, 1)) == PeerState::kConnected);
}

}  // namespace
}  // namespace pullman::sim
