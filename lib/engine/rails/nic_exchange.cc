#include "engine/rails/nic_exchange.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "engine/peer/rail_choice.h"

namespace pullman::engine {
namespace {

// A list takes no more than a HELLO has room for, and three bytes for each rail.
constexpr std::size_t kMaxNicsBytes = 400;

// Taking a list may ask the kernel for routes: so many may come at once, then one per kListRest.
constexpr int kListsAtOnce = 4;
constexpr Duration kListRest = std::chrono::milliseconds(50);

bool is_newer(std::uint32_t count, std::uint32_t than) {
  return static_cast<std::int32_t>(count - than) > 0;
}

bool same_ports(const wire::NicInfo& a, const wire::NicInfo& b) {
  return nic::same_port(a.command, b.command) && nic::same_port(a.data, b.data);
}

}  // namespace

void NicExchange::note_names(Peer& peer, std::span<const wire::NicInfo> nics) const {
  if (!config_.believe_addresses || nics.size() <= 1) return;
  auto& named = news_of(peer).named;
  named.clear();
  named.reserve(nics.size());
  for (const wire::NicInfo& nic : nics) {
    if (nic.command.kind != 0) named.push_back(nic.command);
  }
}

bool NicExchange::send_list(Instant now, Peer& peer, std::uint32_t full_ports) {
  Rail* rail = rail_for_list(peer, full_ports);
  if (rail->command_to == nic::kInvalidDestination || !rail->link.has_space()) return true;
  Channel* channel = with_room(*rail, ChannelKind::kCommand);
  if (channel == nullptr) return false;
  Packet* packet = peer.outbox.control_packet(kMaxNicsBytes);
  if (packet == nullptr) {
    ready_.note_blocked_on_pool();
    return false;
  }
  packet->wants_ack = true;
  peer.nics_due = false;
  peer.told = static_cast<std::uint8_t>(nics_.announced());
  if (peer.rails != nullptr) rails_.plan(peer);
  packet->used += static_cast<std::uint32_t>(wire::put_nics(packet->end(), list_for(peer)));
  sender_.post(now, *rail, *packet, *channel, wire::PacketType::kSequenced);
  return true;
}

// Returns a rail that is used. If there is none it takes all in turn, since one of them may reach
// the peer.
Rail* NicExchange::rail_for_list(Peer& peer, std::uint32_t full_ports) {
  if (peer.rails == nullptr) return &peer.home;
  if (Rail* rail = rail_for_small(peer, full_ports)) return rail;
  std::vector<Rail*> known;
  peer.for_each_rail([&](Rail& rail) {
    if (rail.command_to != nic::kInvalidDestination) known.push_back(&rail);
  });
  return known.empty() ? &peer.home : known[news_of(peer).lists_told % known.size()];
}

wire::NicList NicExchange::list_for(Peer& peer) {
  wire::NicList list;
  list.count = ++news_of(peer).lists_told;
  list.host = host_;
  // The address where the peer receives data was forgotten with the ports it was resolved for, so
  // we ask for it; but not while it is being resolved: two ends that both ask would answer each
  // other all the time.
  const bool seeks = peer.home.is_resolving(ChannelKind::kData);
  list.asks = peer.rails == nullptr && peer.home.data_to == nic::kInvalidDestination && !seeks;
  list.no_ways = peer.rails == nullptr;
  wire::Hello mine;
  nics_.describe(peer.told, mine);
  list.nics = mine.nics;
  list.nic_count = mine.nic_count;
  if (peer.rails == nullptr || epoch_ > peer.epoch) return list;
  peer.for_each_rail([&](const Rail& rail) {
    if (rail.number != 0) list.rails[list.rail_count++] = {rail.number, rail.module, rail.there};
  });
  return list;
}

void NicExchange::drop_lost_list(Instant now, Rail& rail, Packet& packet) {
  rail.link.lost().erase(rail.link.lost().iterator_to(packet));
  reclaimer_.release(rail, packet);
  if (rail.peer.phase == Phase::kClosing) lifecycle_.begin_leaving(now, rail.peer);
}

bool NicExchange::handle_list(Peer& peer, const wire::Frame& frame) {
  auto list = wire::decode_nics(frame.data);
  if (!list) return false;
  const bool sane = std::all_of(list->nics.begin(), list->nics.begin() + list->nic_count,
                                [](const wire::NicInfo& nic) {
                                  return nic.command_packet_bytes >= kLeastCommandBytes &&
                                         nic.data_packet_bytes >= kLeastDataBytes;
                                });
  if (!sane) return false;
  // A list takes nothing back (wire.md 9.11): the NIC by which we met must be in it.
  if (peer.rails == nullptr && list->nic_count <= peer.home.there) return false;
  if (!is_newer(list->count, news_of(peer).lists_heard)) return true;
  nics_.forget_own_addresses(list->host, {list->nics.data(), list->nic_count});
  if (peer.rails != nullptr && !peer.rails->paired && list->no_ways) rails_.pair_none(peer);
  if (peer.rails == nullptr) {
    take_list(clock_.polled_until(), peer, *list);
    return true;
  }
  auto& newest = peer.rails->newest;
  if (newest == nullptr || is_newer(list->count, newest->count)) {
    newest = std::make_unique<wire::NicList>(*list);
  }
  take_newest_list(clock_.polled_until(), peer);
  return true;
}

void NicExchange::handle_due(Instant now, Peer& peer) {
  if (now >= list_due(peer)) take_newest_list(now, peer);
}

// Takes the newest list if it is due; if not, the home rail's timer does so later.
void NicExchange::take_newest_list(Instant now, Peer& peer) {
  Rails& rails = *peer.rails;
  if (now >= list_due(peer)) {
    rails.lists_due = std::max(rails.lists_due, now - (kListsAtOnce - 1) * kListRest) + kListRest;
    const auto list = std::exchange(rails.newest, nullptr);
    take_list(now, peer, *list);
  }
  alarms_.arm_upkeep(now, peer.home);
}

void NicExchange::take_list(Instant now, Peer& peer, const wire::NicList& list) {
  news_of(peer).lists_heard = list.count;
  note_names(peer, {list.nics.data(), list.nic_count});
  std::vector<wire::NicInfo> before;  // two rails may share a NIC: both are compared with this
  if (peer.rails != nullptr) {
    auto& theirs = peer.rails->theirs;
    before = theirs;
    theirs.resize(std::max<std::size_t>(theirs.size(), list.nic_count));
    std::copy_n(list.nics.begin(), list.nic_count, theirs.begin());
  }
  peer.for_each_rail([&](Rail& rail) {
    if (rail.there < list.nic_count) note_address(now, rail, before, list.nics[rail.there]);
  });
  bool answers = list.asks;
  const bool several = wire::several_nics({list.nics.data(), list.nic_count});
  if (peer.rails == nullptr && several && nics_.several_nics(nics_.announced())) {
    rails_.start(peer, {list.nics.data(), list.nic_count});
    peer.rails->paired = true;  // there is no WAYS: one end decides on the rails
    peer.rails->ways_due = peer.rails->reports_due = false;
    answers = true;
    settle_sizes(peer);
  }
  if (peer.rails != nullptr) {
    rails_.follow(peer, list);
    answers = rails_.plan(peer) || answers;
  }
  if (answers) peer.nics_due = true;
  ready_.mark(peer);
}

// Notes where the other end's NIC is. `before`: all its NICs as we knew them, if it has rails.
void NicExchange::note_address(Instant now, Rail& rail, std::span<const wire::NicInfo> before,
                               const wire::NicInfo& nic) {
  Peer& peer = rail.peer;
  const nic::Address known = rail.remote;
  const bool data_known = peer.rails != nullptr;
  PULLMAN_CHECK(!data_known || rail.there < before.size());
  const bool moved =
      data_known ? !same_ports(before[rail.there], nic) : !nic::same_port(known, nic.command);
  if (moved && known.kind == nic.command.kind) return aim_anew(now, rail, nic);
  const bool asked = rail.is_resolving(ChannelKind::kData);
  if (!data_known && !asked && rail.data_to == nic::kInvalidDestination) {
    resolver_.resolve(rail, ChannelKind::kData, nic.data);
  }
}

void NicExchange::aim_anew(Instant now, Rail& rail, const wire::NicInfo& nic) {
  Peer& peer = rail.peer;
  log().info("rail {} by {}: the other end has moved to {}", rail.number, rail.nic->device().name,
             nic::to_string(nic.command));
  if (peer.rails != nullptr) rails_.leave(now, rail, RailReason::kTold);
  reclaimer_.pull_out(rail);
  if (peer.rails != nullptr) reclaimer_.drop_probes(rail);
  resolver_.release(rail);
  rail.remote = nic.command;
  Resolver::note_moved(rail);
  const bool alone = peer.rails == nullptr && !rail.is_resolving(ChannelKind::kData);
  if (alone) resolver_.resolve(rail, ChannelKind::kData, nic.data);
  aim(rail);
}

void NicExchange::aim(Rail& rail) {
  if (rail.peer.rails != nullptr) return resolver_.resolve_both(rail);
  const auto unknown = [&](ChannelKind kind, nic::Destination to) {
    return to == nic::kInvalidDestination && !rail.is_resolving(kind);
  };
  if (unknown(ChannelKind::kCommand, rail.command_to)) {
    resolver_.resolve(rail, ChannelKind::kCommand, rail.remote);
  }
  // Its data address was not kept: the other end is asked for it.
  if (unknown(ChannelKind::kData, rail.data_to)) tell_nics(rail.peer, ready_);
}

void NicExchange::handle_ways(Peer& peer, const wire::Frame& frame) {
  const auto ways = wire::decode_ways(frame.data);
  if (!ways) return;
  // The peer has heard of several NICs at both ends in the handshake, and we have not: our list
  // settles it (wire.md 9.12).
  if (peer.rails == nullptr) return tell_nics(peer, ready_);
  if (peer.rails->paired) return;
  rails_.pair(peer, *ways);
  take_newest_list(clock_.polled_until(), peer);
  ready_.mark(peer);
}

}  // namespace pullman::engine
