#include "reliability/link.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace pullman::reliability {

Link::Link(const LinkOptions& options, const LinkResources& shared, PacketNumber first_number,
           std::uint8_t rail)
    : options_(options),
      window_(shared.window, first_number),
      acks_(shared.bitmaps, options.packets_per_ack),
      rtt_(options.pto_initial, options.pto_floor),
      congestion_(options.window),
      acked_until_(first_number),
      asked_(static_cast<std::uint16_t>(first_number)),
      rail_(rail) {
  recompute_timeout();
  recompute_allowed();
}

Duration Link::timeout() const {
  const Duration base = rtt_.timeout(options_.ack_delay);
  return std::min(base * (1 << backoff_), std::max(base, options_.pto_ceiling));
}

void Link::handle_hello(PacketNumber first, std::uint16_t credit) {
  acks_.start(first);
  credit_ = credit;
  recompute_allowed();
}

void Link::handle_answer(Instant now, Packet& hello, std::uint32_t answered) {
  backoff_ = 0;
  const bool in_flight = hello.state == PacketState::kInFlight;
  if (in_flight && low32(hello.number) == answered && !rtt_.sampled()) {
    const Duration sample = now - hello.sent_at;
    // A longer sample says more about the peer's start than about the path.
    if (sample > Duration(0) && sample < options_.pto_initial / 3) {
      rtt_.add(sample);
      delay_ = sample;
    }
  }
  recompute_timeout();
  // The HELLO's timer is longer than a packet's: a peer to which many connect at once takes longer
  // for the packets that follow than for its WELCOME. With the shorter one, some of the initiators
  // that probed without need got half of the others' share (lab: incast-late).
  if (in_flight && hello.checked_in()) {
    window_.recheck_in(now, std::max(timeout(), options_.pto_initial / 16), hello);
  }
}

Verdict Link::handle_ack(Instant now, const wire::PacketHeader& header, const wire::Frame* sack,
                         AckTiming timing) {
  if (sack == nullptr && repeats_ack(header)) return Verdict::kAccepted;
  const PacketNumber cumulative = expand(header.cumulative, window_.next());
  if (!was_sent(cumulative) || (sack != nullptr && !plausible(*sack))) return Verdict::kBadAck;
  const std::uint32_t in_flight = window_.in_flight();
  Newest newest;
  std::uint32_t count = release_until(cumulative, newest);
  if (sack != nullptr) count += release_sacked(*sack, newest);
  if (cumulative >= acked_until_) {
    acked_until_ = cumulative;
    credit_ = header.credit;
    note_late(now, header.late);
  }
  if (newest.end != 0) {
    backoff_ = 0;
    const Instant before = std::exchange(answered_, newest.sent_at);
    arrived_count_ += count;
    bool is_sampled = false;
    if (header.hold != wire::kHoldUnknown && newest.end == reported_end(cumulative, sack)) {
      const Duration hold(static_cast<std::int64_t>(header.hold * wire::kHoldUnitNs));
      const Duration sample = now - timing.ago - newest.sent_at - hold;
      // A sample may be negative: either end may have read its clock before the packet arrived.
      if (sample > Duration(0)) {
        is_sampled = true;
        rtt_.add(sample, hold);
        // If the last sample is old and this one far shorter, the old ones were of a process that
        // did not run. Less than far is how round trips vary, and a timeout that shrinks with each
        // would come too early (seed 55394).
        if (4 * sample < rtt_.smoothed() && is_stale(before, newest.sent_at)) [[unlikely]]
          rtt_.reset_path_state();
        delay_ = sample - timing.unseen -
                 Duration(static_cast<std::int64_t>(wire::nanoseconds(header.poll_gap)));
      }
    }
    recompute_timeout();
    congestion_.on_ack({.acked = count,
                        .in_flight = in_flight,
                        .highest_acked = newest.end - 1,
                        .next_number = window_.next(),
                        .delay = delay_,
                        .is_sampled = is_sampled,
                        .least = rtt_.least()});
    find_losses(now);
  }
  recompute_allowed();
  return Verdict::kAccepted;
}

// A SACK frame cannot acknowledge packets that were never sent (wire.md 6.4).
bool Link::plausible(const wire::Frame& sack) const {
  return reported_end(0, &sack) <= window_.next() &&
         expand(sack.id, window_.next()) + 64 > window_.first();
}

// Returns one past the highest packet that the ACK reports. The hold time counts from the arrival
// of that packet.
PacketNumber Link::reported_end(PacketNumber cumulative, const wire::Frame* sack) const {
  if (sack == nullptr) return cumulative;
  const std::size_t words = sack->data.size() / 8;
  const std::uint64_t last = wire::sack_word(sack->data, words - 1);
  return expand(sack->id, window_.next()) + words * 64 -
         static_cast<unsigned>(std::countl_zero(last));
}

std::uint32_t Link::release_until(PacketNumber cumulative, Newest& newest) {
  std::uint32_t count = 0;
  while (window_.in_flight() > 0 && window_.floor() < cumulative) {
    if (Run* run = window_.find_run(window_.floor())) {
      count += release_chunks(*run, run->left_below(cumulative), newest);
    } else {
      release(*window_.find(window_.floor()), newest);
      ++count;
    }
  }
  return count;
}

std::uint32_t Link::release_sacked(const wire::Frame& sack, Newest& newest) {
  std::uint32_t count = 0;
  const PacketNumber first = expand(sack.id, window_.next());
  for (std::size_t w = 0; w < sack.data.size() / 8; ++w) {
    for (std::uint64_t bits = wire::sack_word(sack.data, w); bits != 0; bits &= bits - 1) {
      const auto bit = static_cast<unsigned>(std::countr_zero(bits));
      const PacketNumber number = first + w * 64 + bit;
      if (Run* run = window_.find_run(number)) {
        count += release_chunks(*run, std::uint64_t{1} << (number - run->number), newest);
      } else if (Packet* packet = window_.find(number)) {
        release(*packet, newest);
        ++count;
      }
    }
  }
  return count;
}

void Link::release(Packet& packet, Newest& newest) {
  window_.remove(packet);
  note_released(packet, packet.size(), packet.number + 1, newest);
  acked_.push_back(packet);
}

std::uint32_t Link::release_chunks(Run& run, std::uint64_t chunks, Newest& newest) {
  window_.remove_chunks(run, chunks);
  note_released(run, run.longest_of(chunks),
                run.number + static_cast<unsigned>(std::bit_width(chunks)), newest);
  if (run.left == 0) acked_.push_back(run);
  return static_cast<std::uint32_t>(std::popcount(chunks));
}

// `bytes` is the length of the longest packet acknowledged.
void Link::note_released(const Packet& packet, std::size_t bytes, PacketNumber end,
                         Newest& newest) {
  loss_.note_acked(packet.channel, end);
  if (path_.watching()) [[unlikely]]
    path_.handle_acked(bytes);
  if (end > newest.end) newest = {end, packet.sent_at};
}

// The peer counts late packets, which brought nothing new: spurious retransmissions, and packets
// that the network duplicated.
void Link::note_late(Instant now, std::uint16_t late) {
  const auto news = static_cast<std::uint16_t>(late - late_seen_);
  if (news == 0 || news > 0x7FFF) return;
  late_seen_ = late;
  spurious_ += loss_.note_late(now, rtt_, news);
}

void Link::handle_losses(std::size_t count) {
  lost_count_ += count;
  count_after_timeout(count);
  congestion_.on_lost(static_cast<std::uint32_t>(note_path_losses(count)));
}

// Counts those of the last `count` lost packets that had not been found when a timeout made a probe
// due: what followed them was lost, too, or there was nothing.
void Link::count_after_timeout(std::size_t count) {
  auto at = lost_.rbegin();
  for (std::size_t i = 0; i < count; ++i, ++at) {
    if (at->sent_at < last_probe_) ++lost_after_timeout_;
  }
}

// Returns how many of the last `count` lost packets are a sign of congestion. The loss of a path
// MTU probe is not (RFC 8899, 3).
std::size_t Link::note_path_losses(std::size_t count) {
  std::size_t others = 0;
  auto at = lost_.rbegin();
  for (std::size_t i = 0; i < count; ++i, ++at) {
    if (at->is_path_probe) continue;
    path_.handle_lost(at->number, at->size(), window_.next());
    ++others;
  }
  return others;
}

void Link::handle_probe_acked(Instant now, Instant sent_at) {
  constexpr int kAtMost = 16;  // timeouts: if it took longer, an ACK may have been lost
  const Duration took = now - sent_at;
  const Duration expected = rtt_.timeout(options_.ack_delay);
  if (took <= expected) return;
  rtt_.add(std::min(took, kAtMost * expected));
  recompute_timeout();
}

void Link::handle_loss_due(Instant now) {
  find_losses(now);
  recompute_allowed();
}

// A timeout marks nothing lost, it makes a probe due (RFC 9002 6.2.4). find_losses() then declares
// packets lost by the evidence of the probe's ACK.
void Link::handle_eviction(Instant now, Packet& packet) {
  const bool asked = last_probe_ != Instant::min() && now - last_probe_ < timeout();
  // No probe is sent while the loss detector's timer is set (RFC 9002 6.2.1).
  if (!asked && loss_.next_due() == kNever) {
    last_probe_ = now;
    probe_ = packet.channel;
    ++timeouts_;
    if (backoff_ >= 2) congestion_.on_timeout();
    if (backoff_ < kMaxBackoff) ++backoff_;
    recompute_timeout();
    recompute_allowed();
  }
  window_.recheck_in(now, timeout(), packet);
}

std::optional<ChannelKind> Link::take_probe() {
  const auto due = probe_;
  probe_.reset();
  return due;
}

// Returns true if the packet before `end`, the newest, asks for its ACK. While the window limits
// the sender, one packet in kAskedPer does, since its ACK advances the window and drives congestion
// control. In shorter windows not every window has one: the ACK delay suffices there, and asking
// made the shares of 64 senders on one gigabit unequal. (2^16 packets behind the last request, up
// to kAskedPer packets do not ask; at worst one ACK waits for its delay.)
inline bool Link::asks_at(PacketNumber end) {
  const std::uint32_t in_flight = window_.in_flight();
  if (in_flight + in_flight / 2 < allowed_) [[likely]]
    return false;
  if (static_cast<std::uint16_t>(end - asked_) < kAskedPer) return false;
  asked_ = static_cast<std::uint16_t>(end);
  return true;
}

void Link::stamp(Instant now, wire::ConnectionId to, std::uint16_t credit, wire::PacketType type,
                 Packet& packet) {
  const bool again = packet.state == PacketState::kLost;  // later messages may wait for it
  if (again) [[unlikely]]
    loss_.note_resent(now);
  window_.add_at(now, floor_, packet);
  wire::PacketHeader header;
  header.type = type;
  if (packet.is_bulk) [[unlikely]]
    header.type = wire::PacketType::kBulk;
  if (type != wire::PacketType::kHello && (asks_at(packet.number + 1) || packet.wants_ack || again))
      [[unlikely]] {
    header.flags = wire::kFlagAckSoon;
  }
  header.rail = rail_;
  header.length = static_cast<std::uint16_t>(packet.size());
  header.to = to;
  header.number = low32(packet.number);
  header.floor_distance = static_cast<std::uint16_t>(packet.number - window_.floor());
  header.credit = credit;
  if (header.type == wire::PacketType::kSequenced) [[likely]]
    acks_.piggyback(now, header);
  wire::encode(header, packet.bytes);
}

void Link::stamp_run(Instant now, wire::ConnectionId to, std::uint16_t credit, Run& run) {
  window_.add_run(now, floor_, run);
  wire::PacketHeader header;
  header.type = run.is_bulk ? wire::PacketType::kBulk : wire::PacketType::kSequenced;
  header.rail = rail_;
  header.length = static_cast<std::uint16_t>(run.size());
  header.to = to;
  header.number = low32(run.number);
  header.floor_distance = static_cast<std::uint16_t>(run.number - window_.floor());
  header.credit = credit;
  if (!run.is_bulk) acks_.piggyback(now, header);
  wire::encode_run(header, run.bytes, run.stride(), run.count);
  if (run.last_bytes != run.payload_bytes) {
    wire::set_length(run.head_at(run.count - 1), run.used + run.last_bytes);
  }
}

void Link::ask_if_due(Run& run) {
  if (asks_at(run.end()) || run.wants_ack) {
    wire::set_flag(run.head_at(run.count - 1), wire::kFlagAckSoon);
  }
}

void Link::take_back(Run& run, std::uint32_t at) {
  const PacketNumber first = run.number + at;
  const PacketNumber end = run.end();
  for (PacketNumber n = first; n < end; ++n) {
    Packet* packet = window_.find(n);
    PULLMAN_CHECK(packet != nullptr);
    window_.remove(*packet);
    packet->state = PacketState::kQueued;
    lost_.push_back(*packet);
  }
  // The last chunk did not leave, so its request for an ACK does not count.
  if (asked_ == static_cast<std::uint16_t>(end)) {
    asked_ = static_cast<std::uint16_t>(first - kAskedPer);
  }
}

void Link::reset_path_state() {
  rtt_.reset_path_state();
  congestion_ = Congestion(options_.window);
  backoff_ = 0;
  recompute_timeout();
  recompute_allowed();
}

// The packet number of a WELCOME is this link's first one, which it does not use up (wire.md 2.2).
void Link::write_welcome(wire::ConnectionId to, std::uint16_t credit, std::uint32_t answered,
                         std::span<std::byte> packet) const {
  wire::PacketHeader header;
  header.type = wire::PacketType::kWelcome;
  header.length = static_cast<std::uint16_t>(packet.size());
  header.to = to;
  header.number = low32(window_.first());
  header.cumulative = answered;
  header.credit = credit;
  wire::encode(header, packet.data());
}

std::size_t Link::write_ack(Instant now, wire::ConnectionId to, std::uint16_t credit,
                            std::byte* out) {
  wire::PacketHeader header;
  header.type = wire::PacketType::kControl;
  header.rail = rail_;
  header.to = to;
  header.number = low32(acks_sent_++);
  header.credit = credit;
  const std::size_t sack = acks_.write_alone(now, header, out + wire::kHeaderBytes);
  header.length = static_cast<std::uint16_t>(wire::kHeaderBytes + sack);
  wire::encode(header, out);
  return header.length;
}

void Link::recompute_timeout() {
  const Duration stay = timeout();
  if (stay == stay_) return;  // the common case: most timeouts are at their lower bound
  stay_ = stay;
  floor_ = static_cast<std::uint8_t>(Hotel<Packet>::floor_for(stay));
}

void Link::recompute_allowed() {
  allowed_ = std::min({options_.window, std::max(credit_, 1u), congestion_.window()});
}

}  // namespace pullman::reliability
