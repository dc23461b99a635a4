// NICs that come, and addresses that change, while the engine runs (wire.md 9.11). Cold.
//
// A NIC keeps its number for as long as the engine lives; when its address changes it has new ports
// under the same number. Peers are told a new list of NICs; the engine of the lower epoch decides
// which of those that no rail uses become one.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/log.h"
#include "engine/engine_impl.h"
#include "message/segments.h"

namespace pullman::engine {
namespace {

// A list takes no more than HELLO has room for, and its rails three bytes each.
constexpr std::size_t kMaxNicsBytes = 400;

// To take a list may be to ask the kernel for ways: so many may come at once, then one in a while.
constexpr int kListsAtOnce = 4;
constexpr Duration kListRest = std::chrono::milliseconds(50);

bool is_newer(std::uint32_t count, std::uint32_t than) {
  return static_cast<std::int32_t>(count - than) > 0;
}

bool same_ports(const wire::NicInfo& a, const wire::NicInfo& b) {
  return nic::same_port(a.command, b.command) && nic::same_port(a.data, b.data);
}

}  // namespace

std::size_t Engine::Impl::longest_packet() const {
  return packets_.large_bytes() - message::kPieceRoom;
}

// By those who have proved themselves: anybody can call.
bool Engine::Impl::is_in_use(std::size_t slot) const {
  bool any = false;
  peers_.for_each([&](const Peer& peer) {
    const bool unproved = peer.called_us && peer.phase < Phase::kConnected;
    if (peer.phase == Phase::kGone || unproved) return;
    peer.for_each_rail([&](const Rail& rail) { any = any || (nics_of(rail) >> slot & 1) != 0; });
  });
  return any;
}

template <typename Visit>
void Engine::Impl::for_each_rail_by(std::size_t slot, Visit visit) {
  peers_.for_each([&](Peer& peer) {
    peer.for_each_rail([&](Rail& rail) {
      if (rail.module == slot) visit(rail);
    });
  });
}

bool Engine::Impl::set_nic(Instant now, std::size_t slot, NicPorts nic) {
  if (closing_ || slot > modules_.size() || slot >= wire::kMaxNics) return false;
  auto module = std::make_unique<channel::Module>(std::move(nic.device), std::move(nic.command),
                                                  std::move(nic.data));
  for (const ChannelKind kind : {ChannelKind::kCommand, ChannelKind::kData}) {
    if (module->channel(kind).packet_bytes() > longest_packet()) return false;
  }
  if (slot < modules_.size()) {
    replace_module(now, slot, std::move(module));
  } else {
    modules_.push_back(std::move(module));
    enlist(slot);
  }
  share_news_of_nics();
  return true;
}

void Engine::Impl::share_news_of_nics() {
  nics_told_ = nics_to_tell();
  share_credit();
  news_due_ = Instant::min();  // its link may be down
  peers_.for_each([&](Peer& peer) {
    if (peer.phase <= Phase::kClosing) tell_nics_to(peer);
  });
}

bool Engine::Impl::move_nic(Instant now, std::size_t from, std::size_t to) {
  if (closing_ || from == to || std::max(from, to) >= modules_.size()) return false;
  if (deferred_ack_.rail != nullptr) take_deferred_ack(now);
  const std::array<std::size_t, 2> slots{from, to};
  for (const std::size_t slot : slots) {
    drop_callers_at(slot);
    for_each_rail_by(slot, [&](Rail& rail) { detach(now, rail); });
    forget_channels(slot);
    forget_events(slot);
  }
  std::swap(modules_[from], modules_[to]);
  links_down_ |= std::uint32_t{1} << from;
  for (const std::size_t slot : slots) {
    enlist(slot);
    for_each_rail_by(slot, [&](Rail& rail) { attach(now, rail); });
  }
  share_news_of_nics();
  return true;
}

// What its ports have to say is for nobody any more.
void Engine::Impl::forget_events(std::size_t slot) {
  for (const ChannelKind kind : {ChannelKind::kCommand, ChannelKind::kData}) {
    nic::Port& port = modules_[slot]->channel(kind).port();
    std::size_t count = 0;
    do {
      count = port.poll_events(events_);
      for (std::size_t i = 0; i < count; ++i) {
        if (events_[i].kind == nic::PortEvent::Kind::kResolved) port.forget(events_[i].to);
      }
    } while (count == events_.size());
  }
}

void Engine::Impl::enlist(std::size_t slot) {
  for (const ChannelKind kind : {ChannelKind::kCommand, ChannelKind::kData}) {
    Channel& channel = modules_[slot]->channel(kind);
    row_[place_of(slot, kind)] = &channel;
    channel.set_mark(std::uint32_t{1} << place_of(slot, kind));
    all_ |= channel.mark();
    active_channels_ |= channel.mark();
    attended_ |= channel.mark();
    // The first NIC is no last resort.
    const bool beside =
        slot > 0 && modules_[slot]->device().stream && !modules_[0]->device().stream;
    if (beside) {
      streams_ |= channel.mark();
    } else {
      packets_per_turn_ = std::min(packets_per_turn_, channel.port().limits().packets_per_turn);
    }
  }
  if ((drained_ & modules_named(modules_[slot]->device().name)) != 0) {
    drained_ |= std::uint32_t{1} << slot;
  }
  const std::size_t first = first_address_of(slot);
  const bool further =
      first != slot && modules_[first]->device().stream == modules_[slot]->device().stream;
  if (further && !is_in_use(slot)) leave_unattended(slot);
}

// Nobody is met at this further address of a NIC: who calls there can wait a moment, and the others
// need not.
void Engine::Impl::leave_unattended(std::size_t slot) {
  for (const ChannelKind kind : {ChannelKind::kCommand, ChannelKind::kData}) {
    const std::uint32_t mark = modules_[slot]->channel(kind).mark();
    attended_ &= ~mark;
    active_channels_ &= ~mark;
  }
  unattended_due_ = Instant::min();
}

void Engine::Impl::attend(std::size_t slot) {
  for (const ChannelKind kind : {ChannelKind::kCommand, ChannelKind::kData}) {
    attended_ |= modules_[slot]->channel(kind).mark();
  }
  if (attended_ == all_) unattended_due_ = Instant::max();
}

// --- new ports for a NIC that there is

void Engine::Impl::replace_module(Instant now, std::size_t slot,
                                  std::unique_ptr<channel::Module> module) {
  if (deferred_ack_.rail != nullptr) take_deferred_ack(now);
  drop_callers_at(slot);
  for_each_rail_by(slot, [&](Rail& rail) { detach(now, rail); });
  forget_channels(slot);
  const auto before = std::exchange(modules_[slot], std::move(module));
  enlist(slot);
  for_each_rail_by(slot, [&](Rail& rail) { attach(now, rail); });
}

// What has come and was not looked at is lost; what was asked is not answered.
void Engine::Impl::forget_channels(std::size_t slot) {
  for (const ChannelKind kind : {ChannelKind::kCommand, ChannelKind::kData}) {
    Channel& channel = modules_[slot]->channel(kind);
    if ((kept_ & channel.mark()) != 0) channel.give_back(channel.receive());
    kept_ &= ~channel.mark();
    posted_ &= ~channel.mark();
  }
  links_down_ &= ~(std::uint32_t{1} << slot);
  resolving_ -= std::exchange(resolving_at_[slot], 0);
  if (unknown_peer_reply_ && unknown_peer_reply_->module == slot) unknown_peer_reply_.reset();
}

// Those that have not proved themselves call again.
void Engine::Impl::drop_callers_at(std::size_t slot) {
  std::vector<PeerId> dropped;
  peers_.for_each([&](Peer& peer) {
    const bool answered_there = peer.said != nullptr && peer.said->module == slot;
    const bool unproved = peer.called_us && peer.phase < Phase::kConnected;
    if (unproved && (peer.home.module == slot || answered_there)) {
      dropped.push_back(peer.id);
    } else if (answered_there) {
      forget_destination(slot, ChannelKind::kCommand, peer.said->to);
      peer.said->resolving = false;
    }
  });
  for (const PeerId id : dropped) {
    Peer& peer = *peers_.find(id);
    end_peer(peer, Status::kUnreachable);
    discard(peer);
  }
}

// Nothing of the rail is with its NIC any more.
void Engine::Impl::detach(Instant now, Rail& rail) {
  Peer& peer = rail.peer;
  if (peer.phase != Phase::kGone) {
    if (peer.rails != nullptr) leave_rail(now, rail, RailReason::kAddressGone);
    pull_out(rail);
    if (peer.rails != nullptr) drop_probes(rail);
  }
  forget_destinations(rail);
}

// A port that is kept would keep the destination, too, and what it has for it.
void Engine::Impl::forget_destination(std::size_t slot, ChannelKind kind, nic::Destination& to) {
  if (to != nic::kInvalidDestination) modules_[slot]->channel(kind).port().forget(to);
  to = nic::kInvalidDestination;
}

void Engine::Impl::forget_destinations(Rail& rail) {
  forget_destination(rail.module, ChannelKind::kCommand, rail.command_to);
  forget_destination(rail.module, ChannelKind::kData, rail.data_to);
}

// Packets that wait for the NIC count as sent, and as lost when that is found.
void Engine::Impl::pull_out(Rail& rail) {
  const auto& window = rail.link.window();
  for (auto n = window.floor(); n < window.next(); ++n) {
    Packet* packet = rail.link.find(n);
    if (packet != nullptr && packet->in_channel) withdraw(rail, *packet);
  }
  for (Packet& packet : rail.link.lost()) {
    if (packet.in_channel) withdraw(rail, packet);
  }
}

// The rail goes on by its NIC's new ports.
void Engine::Impl::attach(Instant now, Rail& rail) {
  Peer& peer = rail.peer;
  rail.nic = modules_[rail.module].get();
  if (peer.phase == Phase::kGone) return;
  if (peer.rails != nullptr) handle_link_up(now, rail);
  rail.resolving = rail.stale = 0;
  if (peer.rails != nullptr) return resolve_rail(rail);
  if (Packet* hello = peer.phase < Phase::kConnected ? peer.hello : nullptr) {
    if (hello->state == channel::PacketState::kInFlight) rail.link.abandon(*hello);
    hello->state = channel::PacketState::kQueued;
    ++peer.call;
    write_hello(peer, false, hello->bytes + wire::kHeaderBytes);
  }
  start_resolving(rail, ChannelKind::kCommand, rail.remote);
}

// --- telling it

void Engine::Impl::tell_nics_to(Peer& peer) {
  peer.nics_due = true;
  if (tells_nics(peer)) mark_ready(peer);
}

// WAYS come first, and mean the NICs that were told before: see pair_rails().
bool Engine::Impl::tells_nics(const Peer& peer) {
  const bool met = peer.phase == Phase::kConnected || peer.phase == Phase::kClosing;
  return peer.nics_due && met &&
         (peer.rails == nullptr || (peer.rails->paired && !peer.rails->ways_due));
}

// In a packet of its own, beyond the window: until it has arrived, nothing may. False: not yet.
bool Engine::Impl::send_nics(Instant now, Peer& peer) {
  Rail* rail = rail_for_nics(peer);
  if (rail->command_to == nic::kInvalidDestination || !rail->link.has_space()) return true;
  Channel* channel = with_room(*rail, ChannelKind::kCommand);
  if (channel == nullptr) return false;
  Packet* packet = peer.outbox.control_packet(kMaxNicsBytes);
  if (packet == nullptr) {
    is_blocked_on_pool();
    return false;
  }
  packet->wants_ack = true;
  peer.nics_due = false;
  peer.told = static_cast<std::uint8_t>(nics_told_);
  if (peer.rails != nullptr) plan_rails(peer);
  packet->used += static_cast<std::uint32_t>(wire::put_nics(packet->end(), list_for(peer)));
  post(now, *rail, *packet, *channel, wire::PacketType::kSequenced);
  return true;
}

// One that is used, or all in turn: who has to hear of it may be reached by one of them.
Rail* Engine::Impl::rail_for_nics(Peer& peer) {
  if (peer.rails == nullptr) return &peer.home;
  if (Rail* rail = rail_for_small(peer)) return rail;
  std::vector<Rail*> known;
  peer.for_each_rail([&](Rail& rail) {
    if (rail.command_to != nic::kInvalidDestination) known.push_back(&rail);
  });
  return known.empty() ? &peer.home : known[news_of(peer).lists_told % known.size()];
}

wire::NicList Engine::Impl::list_for(Peer& peer) {
  wire::NicList list;
  list.count = ++news_of(peer).lists_told;
  list.host = host_;
  // Where it receives data was forgotten with the ports it was resolved for. While that is being
  // found out there is nothing to ask: two ends that do would answer each other all the time.
  const bool seeks = (peer.home.resolving & bit_of(ChannelKind::kData)) != 0;
  list.asks = peer.rails == nullptr && peer.home.data_to == nic::kInvalidDestination && !seeks;
  list.no_ways = peer.rails == nullptr;
  const wire::Hello mine = describe(peer);
  list.nics = mine.nics;
  list.nic_count = mine.nic_count;
  if (peer.rails == nullptr || epoch_ > peer.epoch) return list;
  peer.for_each_rail([&](const Rail& rail) {
    if (rail.number != 0) list.rails[list.rail_count++] = {rail.number, rail.module, rail.there};
  });
  return list;
}

// It is overdue, or given up: whom it was to tell where we are cannot answer before. It is told
// anew, unless a newer one has been.
void Engine::Impl::repeat_nics(const Packet& packet, Peer& peer) {
  if (holds_list(packet) && !holds_old_list(packet, peer)) tell_nics_to(peer);
}

bool Engine::Impl::holds_list(const Packet& packet) {
  return !packet.is_probe && packet.payload == nullptr && wire::list_count(packet.body());
}

bool Engine::Impl::holds_old_list(const Packet& packet, const Peer& peer) {
  return holds_list(packet) && peer.nic_news != nullptr &&
         wire::list_count(packet.body()) != peer.nic_news->lists_told;
}

void Engine::Impl::drop_lost_list(Instant now, Rail& rail, Packet& packet) {
  rail.link.lost().erase(rail.link.lost().iterator_to(packet));
  release(rail, packet);
  if (rail.peer.phase == Phase::kClosing) begin_leaving(now, rail.peer);
}

NicNews& Engine::Impl::news_of(Peer& peer) {
  if (peer.nic_news == nullptr) peer.nic_news = std::make_unique<NicNews>();
  return *peer.nic_news;
}

// --- hearing it

bool Engine::Impl::handle_nics(Peer& peer, const wire::Frame& frame) {
  auto list = wire::decode_nics(frame.data);
  if (!list) return false;
  const bool sane = std::all_of(list->nics.begin(), list->nics.begin() + list->nic_count,
                                [](const wire::NicInfo& nic) {
                                  return nic.command_packet_bytes >= kLeastCommandBytes &&
                                         nic.data_packet_bytes >= kLeastDataBytes;
                                });
  if (!sane) return false;
  // A list takes nothing back (wire.md 9.11): the NIC by which we met is in it.
  if (peer.rails == nullptr && list->nic_count <= peer.home.there) return false;
  if (!is_newer(list->count, news_of(peer).lists_heard)) return true;
  forget_own_addresses(list->host, {list->nics.data(), list->nic_count});
  if (peer.rails != nullptr && !peer.rails->paired && list->no_ways) pair_none(peer);
  if (peer.rails == nullptr) {
    take_nics(polled_until_, peer, *list);
    return true;
  }
  auto& newest = peer.rails->newest;
  if (newest == nullptr || is_newer(list->count, newest->count)) {
    newest = std::make_unique<wire::NicList>(*list);
  }
  take_newest_list(polled_until_, peer);
  return true;
}

Instant Engine::Impl::list_due(const Peer& peer) {
  const Rails& rails = *peer.rails;
  return rails.newest != nullptr && rails.paired ? rails.lists_due : kNever;
}

// If it is due; if not, the home rail's timer comes back to it.
void Engine::Impl::take_newest_list(Instant now, Peer& peer) {
  Rails& rails = *peer.rails;
  if (now >= list_due(peer)) {
    rails.lists_due = std::max(rails.lists_due, now - (kListsAtOnce - 1) * kListRest) + kListRest;
    const auto list = std::exchange(rails.newest, nullptr);
    take_nics(now, peer, *list);
  }
  arm_upkeep(now, peer.home);
}

void Engine::Impl::take_nics(Instant now, Peer& peer, const wire::NicList& list) {
  news_of(peer).lists_heard = list.count;
  note_names(peer, {list.nics.data(), list.nic_count});
  std::vector<wire::NicInfo> before;  // two rails may share a NIC: each is compared with that
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
  if (peer.rails == nullptr && several && several_nics(nics_told_)) {
    start_rails(peer, {list.nics.data(), list.nic_count});
    peer.rails->paired = true;  // rails are what one end decides
    peer.rails->ways_due = peer.rails->reports_due = false;
    answers = true;
    settle_sizes(peer);
  }
  if (peer.rails != nullptr) {
    follow_rails(peer, list);
    answers = plan_rails(peer) || answers;
  }
  if (answers) peer.nics_due = true;
  mark_ready(peer);
}

// Where the other end's NIC is by now. `before`: all its NICs as we knew them, if we have rails.
void Engine::Impl::note_address(Instant now, Rail& rail, std::span<const wire::NicInfo> before,
                                const wire::NicInfo& nic) {
  Peer& peer = rail.peer;
  const nic::Address known = rail.remote;
  const bool data_known = peer.rails != nullptr;
  PULLMAN_CHECK(!data_known || rail.there < before.size());
  const bool moved =
      data_known ? !same_ports(before[rail.there], nic) : !nic::same_port(known, nic.command);
  if (moved && known.kind == nic.command.kind) return aim_anew(now, rail, nic);
  const bool asked = (rail.resolving & bit_of(ChannelKind::kData)) != 0;
  if (!data_known && !asked && rail.data_to == nic::kInvalidDestination) {
    start_resolving(rail, ChannelKind::kData, nic.data);
  }
}

void Engine::Impl::aim_anew(Instant now, Rail& rail, const wire::NicInfo& nic) {
  Peer& peer = rail.peer;
  log().info("rail {} by {}: the other end is at {} by now", rail.number,
             module_of(rail).device().name, nic::to_string(nic.command));
  if (peer.rails != nullptr) leave_rail(now, rail, RailReason::kTold);
  pull_out(rail);
  if (peer.rails != nullptr) drop_probes(rail);
  forget_destinations(rail);
  rail.remote = nic.command;
  rail.stale = rail.resolving;
  const bool alone = peer.rails == nullptr && (rail.resolving & bit_of(ChannelKind::kData)) == 0;
  if (alone) start_resolving(rail, ChannelKind::kData, nic.data);
  aim(rail);
}

// Asks our NIC for what it does not know yet of where the other end is.
void Engine::Impl::aim(Rail& rail) {
  if (rail.peer.rails != nullptr) return resolve_rail(rail);
  const auto unknown = [&](ChannelKind kind, nic::Destination to) {
    return to == nic::kInvalidDestination && (rail.resolving & bit_of(kind)) == 0;
  };
  if (unknown(ChannelKind::kCommand, rail.command_to)) {
    start_resolving(rail, ChannelKind::kCommand, rail.remote);
  }
  // Nobody has kept its address: the other end is asked for it.
  if (unknown(ChannelKind::kData, rail.data_to)) tell_nics_to(rail.peer);
}

}  // namespace pullman::engine
