#include "engine/engine.h"

#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "engine/engine_impl.h"
#include "message/segments.h"
#include "wire/frame.h"

namespace pullman::engine {
namespace {

reliability::LinkOptions link_options_of(const Config& config) {
  return {.window = static_cast<std::uint32_t>(config.send_window),
          .packets_per_ack = static_cast<std::uint32_t>(config.ack_packets),
          .ack_delay = config.ack_delay,
          .rto_initial = config.rto_initial,
          .rto_floor = config.rto_min,
          .rto_ceiling = std::max(config.rto_initial, config.peer_timeout / 8)};
}

std::vector<std::unique_ptr<channel::Module>> modules_of(std::vector<NicPorts> nics) {
  PULLMAN_CHECK(!nics.empty() && nics.size() <= wire::kMaxNics);
  std::vector<std::unique_ptr<channel::Module>> modules;
  modules.reserve(nics.size());
  for (NicPorts& nic : nics) {
    modules.push_back(std::make_unique<channel::Module>(
        std::move(nic.device), std::move(nic.command), std::move(nic.data)));
  }
  return modules;
}

std::size_t largest_packet(const std::vector<std::unique_ptr<channel::Module>>& modules) {
  std::size_t largest = 0;
  for (const auto& module : modules) {
    for (const ChannelKind kind : {ChannelKind::kCommand, ChannelKind::kData}) {
      largest = std::max(largest, module->channel(kind).packet_bytes());
    }
  }
  return largest;
}

}  // namespace

namespace {

// Half of what all peers may use is theirs alone, the rest is lent; but no less than a HELLO tells.
std::uint64_t own_share(std::uint64_t window) {
  return std::max<std::uint64_t>(window / 2, message::kLeastAllowance);
}

}  // namespace

Engine::Impl::Impl(const Config& config, std::vector<NicPorts> nics, const Identity& identity,
                   Instant now)
    : config_(config),
      random_(identity.key),
      epoch_(random_.next()),
      host_(identity.host),
      modules_(modules_of(std::move(nics))),
      nics_told_(nics_to_tell()),
      packets_(config.send_packets, largest_packet(modules_) + message::kPieceRoom),
      rings_(config.max_peers * wire::kMaxRails),
      arrival_bitmaps_(config.max_peers * wire::kMaxRails),
      id_bitmaps_(2 * config.max_peers),
      send_queues_(config.max_peers),
      send_parts_(config.max_peers),
      begun_(config.max_peers),
      link_options_(link_options_of(config)),
      link_resources_{{hotel_, rings_, packets_}, arrival_bitmaps_},
      window_(config.unexpected_bytes / config.max_peers),
      reserve_(config.unexpected_bytes - own_share(window_) * config.max_peers),
      eager_bytes_(static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
          window_ / 2 - message::kMessageCharge, message::kLeastEager, config.eager_bytes))),
      inbox_resources_{matcher_,
                       held_.resource(),
                       id_bitmaps_,
                       shorts_,
                       begun_,
                       inbox_counters_,
                       {own_share(window_), window_, reserve_},
                       eager_bytes_,
                       &space_matchers_,
                       &regions_},
      outbox_resources_{packets_, id_bitmaps_, send_queues_, send_parts_, outbox_counters_},
      ack_timers_(config.ack_delay),
      peers_(config.max_peers),
      tick_(static_cast<std::uint64_t>(now.time_since_epoch() / kTick)),
      polled_until_(now) {
  for (std::size_t i = 0; i < modules_.size(); ++i) enlist(i);
  share_credit();
}

Engine::Impl::~Impl() {
  abort();
  for (std::uint32_t i = 0; i < peers_.slots(); ++i) {
    if (Peer* peer = peers_.at(i)) discard(*peer);
  }
}

Connected Engine::Impl::connect(Instant now, const nic::Address& address) {
  if (closing_) return {Status::kClosed, {}};
  Peer* known = peers_.find_address(address);
  if (known != nullptr && known->phase < Phase::kClosing && !known->release_when_gone) {
    if (known->called_us && known->phase < Phase::kConnected) adopt_caller(*known);
    return {Status::kOk, known->id};
  }
  if (const Peer* peer = known_elsewhere(address)) return {Status::kOk, peer->id};
  if (!has_family_of(address)) return {Status::kUnreachable, {}};
  const Peer* peer = make_peer(now, address, module_for(address));
  if (peer == nullptr && !half_open_.empty()) {
    drop_oldest_caller();
    peer = make_peer(now, address, module_for(address));
  }
  if (peer == nullptr) return {Status::kTooManyPeers, {}};
  return {Status::kOk, peer->id};
}

std::optional<PeerId> Engine::Impl::accept() {
  while (!callers_.empty()) {
    const PeerId id = callers_.front();
    callers_.pop_front();
    if (peers_.find(id) != nullptr) return id;
  }
  return std::nullopt;
}

Status Engine::Impl::send(Instant now, const Departure& departure, PeerId id, Tag tag,
                          std::span<const std::byte> bytes, Request& request) {
  if (!request.done()) return Status::kBusy;
  Peer* peer = departure.peer;
  Status refused = Status::kOk;
  if (closing_) {
    refused = Status::kClosed;
  } else if (peer == nullptr) {
    refused = Status::kUnknownPeer;
  } else if (bytes.size() > wire::kMaxMessageBytes) {
    refused = Status::kInvalidArgument;
  } else if (peer->phase >= Phase::kClosing) {
    refused = peer->phase == Phase::kGone ? peer->why : Status::kPeerClosed;
  }
  if (refused != Status::kOk) {
    request.begin(detail::Operation::Kind::kSend, id, tag);
    request.finish(refused, 0);
    return refused;
  }
  const bool copied = peer->outbox.send(id, tag, bytes, request);
  ++stats_.messages_sent;
  stats_.bytes_sent += bytes.size();
  depart(now, *peer, departure.at_once, bytes.size());
  return copied ? Status::kOk : request.status();
}

// The usual message of many: it leaves with those that wait.
inline bool Engine::Impl::append(const Departure& departure, Tag tag,
                                 std::span<const std::byte> bytes, Request& request) {
  Peer* peer = departure.peer;
  if (departure.at_once || peer == nullptr || !request.done()) return false;
  if (closing_ || peer->phase >= Phase::kClosing || !peer->alarm.checked_in()) return false;
  if (!peer->outbox.append(tag, bytes)) return false;
  request.finish_copied(peer->id, tag, bytes.size());
  ++stats_.messages_sent;
  stats_.bytes_sent += bytes.size();
  wait_for_turn(*peer);
  return true;
}

// The fast path: nothing is queued or in flight, so nothing can be overtaken and nobody to wait
// for.
bool Engine::Impl::sends_at_once(const Peer& peer) const {
  if (peer.ready.is_linked()) return false;
  const Rail* rail = &peer.home;
  if (peer.rails != nullptr) [[unlikely]] {
    rail = const_cast<Peer&>(peer).rail(peer.rails->favourite);
    if (!usable(*rail) || !rail->resolved()) return false;
  }
  const bool none_in_flight =
      rail->link.in_flight() == 0 ||
      (deferred_ack_.rail == rail && rail->link.acks_all(deferred_ack_.header));
  return none_in_flight && peer.outbox.queued_packets() == 0 && peer.flows();
}

Status Engine::Impl::receive(Instant now, PeerId source, Tag tag, Tag ignore,
                             std::span<std::byte> buffer, Request& request) {
  if (!request.done()) return Status::kBusy;
  request.begin(detail::Operation::Kind::kReceive, source, tag);
  auto& op = request.operation();
  op.ignore = ignore;
  op.buffer = buffer.data();
  op.size = buffer.size();
  return match_or_post(now, request);
}

// A receive that has begun takes a message that waits for it, or is posted.
Status Engine::Impl::match_or_post(Instant now, Request& request) noexcept {
  const auto& op = request.operation();
  const PeerId source = op.peer;
  message::Matcher& matcher = matcher_of(request);
  if (closing_) {
    request.finish(Status::kClosed, 0);
    return Status::kClosed;
  }
  Peer* named = source == kAnyPeer ? nullptr : peers_.find(source);
  if (source != kAnyPeer && named == nullptr) {
    request.finish(Status::kUnknownPeer, 0);
    return Status::kUnknownPeer;
  }
  const bool gone = named != nullptr && named->phase == Phase::kGone;
  const auto find = [&] {
    return gone ? matcher.find({source, op.tag, op.ignore}) : matcher.find_or_post(request);
  };
  while (message::Unexpected* message = find()) {
    Peer& from = *peers_.find(message->peer);
    Request& taker = matcher.taker(request, message->total - wire::lead_bytes(message->kind));
    from.inbox.attach(*message, taker);
    look_after_match(now, from, !taker.done());
    if (&taker == &request || request.done()) return request.status();
  }
  if (gone) {
    request.finish(named->why, 0);
    return named->why;
  }
  if (named != nullptr && !named->alarm.checked_in()) arm(now, *named);
  return Status::kPending;
}

bool Engine::Impl::cancel(Request& request) {
  auto& op = request.operation();
  if (op.kind != detail::Operation::Kind::kReceive || !op.queue.is_linked()) return false;
  message::Matcher* const matcher = find_matcher(op.special.wire_kind);
  if (matcher == nullptr) return false;  // another context's
  matcher->remove(request);
  request.finish(Status::kCancelled, 0);
  return true;
}

// Link events wait a little: to look costs a system call a port, and when there are packets an
// answer may depend on those. Of many engines that are looked after in turn each would look every
// time. Addresses that are being resolved do not wait.
void Engine::Impl::poll_port_events(Instant now, std::size_t received) {
  const bool busy = received != 0;
  ++turns_since_news_;
  const bool due =
      turns_since_news_ >= kTurnsPerNews && now >= news_due_ + (busy ? kNewsRest : Duration(0));
  if (resolving_ > 0 || due) [[unlikely]] {
    turns_since_news_ = 0;
    news_due_ = now + kNewsRest;
    handle_events(now);
  } else {
    resting_until_ = busy ? Instant::min() : std::min(resting_until_, news_due_);
  }
}

// One turn: take what arrived, let time pass, send what is due, ack what did not find a ride.
std::size_t Engine::Impl::progress(Instant now) {
  const unsigned fruitless = fruitless_;
  const bool kept = kept_ != 0;
  moved_ = false;
  handle_deferred_ack(now);
  unpolled_ = std::min(now - polled_until_, kMaxUnseen);
  poll_gap_ = wire::poll_gap_of(static_cast<std::uint64_t>(unpolled_.count()));
  polled_until_ = now;
  retransmits_left_ = kRetransmitsPerTurn;
  if (waits_) send_what_waits(now);
  const std::size_t received = receive_all(now);
  poll_port_events(now, received);
  // What is kept, or came while something was, may acknowledge what is overdue.
  handle_timers(now, pause_.holds_timers(kept || kept_ != 0));
  if (reserve_.any_blocked()) [[unlikely]]
    look_after_blocked(now);
  transmit(now);
  send_acks(now);
  flush();
  if (!leaving_.empty()) [[unlikely]]
    discard_leaving();
  const bool stuck = received == 0 && !moved_ && has_work();
  fruitless_ = stuck ? std::min(fruitless + 1, kMaxRefusals) : 0;
  return received;
}

// An ACK that is late with a message is for ourselves, but the one that the message asked for may
// be held back with it.
bool Engine::Impl::has_pending_tx() const {
  if (!ack_now_.empty() || has_work()) return true;
  return deferred_ack_.rail != nullptr &&
         deferred_ack_.rail->link.ack_need() >= reliability::AckNeed::kEnough;
}

Instant Engine::Impl::next_deadline() const {
  const bool work = has_work();
  if (deferred_ack_.rail != nullptr || kept_ != 0 || !ack_now_.empty()) return Instant::min();
  if (work && fruitless_ == 0) return Instant::min();
  const Instant asked = work ? polled_until_ + kRefusalPause * (1 << fruitless_) : Instant::max();
  const Instant blocked = reserve_.any_blocked() ? standstill_.due() : Instant::max();
  return std::min({asked, resting_until_, blocked, hotel_.next_due(), ack_timers_.next_due(),
                   alarms_.next_due()});
}

Engine::Engine(const Config& config, std::vector<NicPorts> nics, const Identity& identity,
               Instant now)
    : impl_(std::make_unique<Impl>(config, std::move(nics), identity, now)) {}
Engine::~Engine() = default;

Connected Engine::connect(Instant now, const nic::Address& address) {
  return impl_->connect(now, address);
}
std::optional<PeerId> Engine::accept() {
  return impl_->accept();
}
void Engine::disconnect(Instant now, PeerId peer) noexcept {
  impl_->disconnect(now, peer);
}
Status Engine::send(Instant now, PeerId peer, Tag tag, std::span<const std::byte> bytes,
                    Request& request) {
  const Departure departure = impl_->departure(peer);
  if (impl_->append(departure, tag, bytes, request)) return Status::kOk;
  return impl_->send(now, departure, peer, tag, bytes, request);
}
Status Engine::send(Instant now, const Departure& departure, PeerId peer, Tag tag,
                    std::span<const std::byte> bytes, Request& request) {
  return impl_->send(now, departure, peer, tag, bytes, request);
}
bool Engine::append(const Departure& departure, Tag tag, std::span<const std::byte> bytes,
                    Request& request) {
  return impl_->append(departure, tag, bytes, request);
}
Status Engine::send_copy(Instant now, const Departure& departure, PeerId peer, Tag tag,
                         std::span<const std::byte> bytes, const SendOptions& options,
                         Request& request) {
  return impl_->send_copy(now, departure, peer, tag, bytes, options, request);
}
Status Engine::receive(Instant now, PeerId source, Tag tag, Tag ignore, std::span<std::byte> buffer,
                       Request& request) {
  return impl_->receive(now, source, tag, ignore, buffer, request);
}
bool Engine::cancel(Request& request) {
  return impl_->cancel(request);
}
Status Engine::send(Instant now, PeerId peer, Tag tag, ConstSegments pieces,
                    const SendOptions& options, Request& request) {
  return impl_->send(now, peer, tag, pieces, options, request);
}
Status Engine::send(Instant now, PeerId peer, Tag tag, const Packer& packer, std::uint64_t length,
                    const SendOptions& options, Request& request) {
  return impl_->send(now, peer, tag, packer, length, options, request);
}
Status Engine::receive(Instant now, PeerId source, Tag tag, Tag ignore, Segments pieces,
                       const ReceiveOptions& options, Request& request) {
  return impl_->receive(now, source, tag, ignore, pieces, options, request);
}
std::optional<Probe> Engine::probe(PeerId source, Tag tag, Tag ignore, std::uint8_t space) {
  return impl_->probe(source, tag, ignore, space);
}
std::optional<Probe> Engine::next_unexpected(std::uint8_t space) {
  return impl_->next_unexpected(space);
}
std::optional<Probe> Engine::claim(PeerId source, Tag tag, Tag ignore, std::uint8_t space) {
  return impl_->claim(source, tag, ignore, space);
}
Status Engine::receive(Instant now, PeerId source, Tag tag, Tag ignore, std::span<std::byte> buffer,
                       const ReceiveOptions& options, MultiReceive& receive) {
  return impl_->receive(now, source, tag, ignore, buffer, options, receive);
}
Status Engine::receive_claimed(Instant now, const Claimed& claimed, Segments pieces,
                               Request& request) {
  return impl_->receive_claimed(now, claimed, pieces, request);
}
Status Engine::discard(Instant now, const Claimed& claimed) noexcept {
  return impl_->discard_claimed(now, claimed);
}
bool Engine::add_region(std::uint64_t key, std::span<std::byte> bytes, Access access) {
  return impl_->add_region(key, bytes, access);
}
std::uint64_t Engine::add_region(std::span<std::byte> bytes, Access access) {
  return impl_->add_region(bytes, access);
}
bool Engine::remove_region(std::uint64_t key) noexcept {
  return impl_->remove_region(key);
}
Status Engine::put(Instant now, PeerId peer, const RemotePlace& place, ConstSegments pieces,
                   const PutOptions& options, Request& request) {
  return impl_->put(now, peer, place, pieces, options, request);
}
Status Engine::get(Instant now, PeerId peer, const RemotePlace& place, Segments pieces,
                   Request& request) {
  return impl_->get(now, peer, place, pieces, request);
}
Status Engine::atomic(Instant now, PeerId peer, const RemotePlace& place, const Atomic& atomic,
                      Request& request) {
  return impl_->atomic(now, peer, place, atomic, request);
}
std::optional<RemoteEvent> Engine::take_event() {
  return impl_->take_event();
}
RemoteUse Engine::remote_use() const {
  return impl_->regions().use();
}
RemoteUse Engine::remote_use(std::uint64_t key) const {
  return impl_->regions().use(key);
}
void Engine::watched(Instant now) {
  impl_->watched(now);
}
void Engine::prepare_to_block() {
  impl_->prepare_to_block();
}
bool Engine::set_nic(Instant now, std::size_t slot, NicPorts nic) {
  return impl_->set_nic(now, slot, std::move(nic));
}
bool Engine::move_nic(Instant now, std::size_t from, std::size_t to) {
  return impl_->move_nic(now, from, to);
}
std::size_t Engine::longest_packet() const {
  return impl_->longest_packet();
}
bool Engine::is_in_use(std::size_t slot) const {
  return impl_->is_in_use(slot);
}
std::size_t Engine::progress(Instant now) noexcept {
  return impl_->progress(now);
}
bool Engine::has_pending_tx() const {
  return impl_->has_pending_tx();
}
Instant Engine::next_deadline() const {
  return impl_->next_deadline();
}
Departure Engine::departure(PeerId peer) const {
  return impl_->departure(peer);
}
void Engine::abandon(PeerId peer) noexcept {
  impl_->abandon(peer);
}
void Engine::close_abortively(Instant now) noexcept {
  impl_->close_abortively(now);
}
void Engine::begin_close(Instant now) noexcept {
  impl_->begin_close(now);
}
bool Engine::drained() const {
  return impl_->drained();
}
void Engine::abort() noexcept {
  impl_->abort();
}
PeerState Engine::peer_state(PeerId peer) const {
  return impl_->peer_state(peer);
}
bool Engine::is_self(PeerId peer) const {
  return impl_->is_self(peer);
}
Status Engine::peer_status(PeerId peer) const {
  return impl_->peer_status(peer);
}
std::optional<LinkView> Engine::link(PeerId peer) const {
  return impl_->link(peer);
}
std::string Engine::explain_rails(PeerId peer) const {
  return impl_->explain_rails(peer);
}
Status Engine::begin_check(Instant now, PeerId peer, Duration limit) noexcept {
  return impl_->begin_check(now, peer, limit);
}
std::optional<std::vector<RailCheck>> Engine::check_result(PeerId peer) const {
  return impl_->check_result(peer);
}
std::vector<RailView> Engine::rails(Instant now, PeerId peer) const {
  return impl_->rails(now, peer);
}
std::optional<RailEvent> Engine::take_rail_event(PeerId peer) {
  return impl_->take_rail_event(peer);
}
Status Engine::drain_rail(Instant now, std::string_view nic) {
  return impl_->set_drained(now, nic, true);
}
Status Engine::restore_rail(Instant now, std::string_view nic) {
  return impl_->set_drained(now, nic, false);
}
const nic::Address& Engine::address() const {
  return impl_->address();
}
Stats Engine::stats() const {
  return impl_->stats();
}
Audit Engine::audit() const {
  return impl_->audit();
}
std::string Engine::dump() const {
  return impl_->dump();
}

}  // namespace pullman::engine
