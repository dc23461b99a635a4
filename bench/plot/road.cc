#include "plot/road.h"

#include <algorithm>
#include <cstring>

#include "plot/road_port.h"

namespace pullman::lab {
namespace {

// What a datagram takes on the wire beside its bytes: UDP, IP, Ethernet, preamble and gap.
constexpr std::size_t kWireOverhead = 8 + 20 + 18 + 20;

}  // namespace

Road::Road(const RoadPlan& plan, std::size_t hosts, std::size_t senders, std::uint64_t seed)
    : plan_(plan),
      senders_(senders),
      random_(seed),
      access_(hosts),
      spent_(hosts),
      ports_(2 * hosts) {}
Road::~Road() = default;

std::unique_ptr<nic::Port> Road::open(std::size_t host, Channel channel) {
  const auto place = static_cast<std::uint32_t>(2 * host + static_cast<std::size_t>(channel));
  auto port = std::make_unique<RoadPort>(*this, place, plan_);
  ports_[place] = port.get();
  return port;
}

bool Road::has_work(std::size_t host) const {
  return ports_[2 * host]->has_work() || ports_[2 * host + 1]->has_work();
}

Duration Road::transfer(std::size_t bytes, std::uint64_t bits_per_second) const {
  return Duration(
      static_cast<Duration::rep>((bytes + kWireOverhead) * 8 * 1'000'000'000 / bits_per_second));
}

void Road::push(Instant at, Datagram datagram) {
  heap_.push_back({at, serial_++, std::move(datagram)});
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

bool Road::send(std::uint32_t from, const nic::Outgoing& packet) {
  Line& line = access_[from / 2];
  const std::uint64_t rate = plan_.access_bits_per_second;
  if (line.busy_until - now_ >
      static_cast<Duration::rep>(plan_.send_packets) * transfer(1472, rate))
    return false;
  Datagram datagram;
  datagram.length = static_cast<std::uint32_t>(packet.head.size() + packet.payload.size());
  datagram.bytes.reset(new std::byte[datagram.length]);
  std::memcpy(datagram.bytes.get(), packet.head.data(), packet.head.size());
  if (!packet.payload.empty()) {
    std::memcpy(datagram.bytes.get() + packet.head.size(), packet.payload.data(),
                packet.payload.size());
  }
  datagram.to = static_cast<std::uint32_t>(packet.to);
  datagram.forth = from / 2 < senders_;
  spend(from / 2, 1);
  const Instant offered = now_ + spent(from / 2);
  line.busy_until = std::max(line.busy_until, offered) + transfer(datagram.length, rate);
  push(line.busy_until, std::move(datagram));
  return true;
}

std::size_t Road::queued() const {
  const Duration wait = std::max(bottleneck_[0].busy_until - now_, Duration(0));
  return static_cast<std::size_t>(wait.count()) * (plan_.bits_per_second / 1'000'000) / 8000;
}

void Road::enter_bottleneck(Datagram datagram) {
  Line& line = bottleneck_[datagram.forth ? 0 : 1];
  const Duration room = Duration(static_cast<Duration::rep>(plan_.queue_bytes * 8 * 1000 /
                                                            (plan_.bits_per_second / 1'000'000)));
  if (line.busy_until - now_ > room) {
    ++queue_drops_;
    return;
  }
  if (datagram.forth) ++carried_;
  line.busy_until =
      std::max(line.busy_until, now_) + transfer(datagram.length, plan_.bits_per_second);
  if (plan_.loss_millionths != 0 && random_.chance(plan_.loss_millionths)) return;
  Instant at = line.busy_until + plan_.delay;
  if (plan_.reorder_millionths != 0 && random_.chance(plan_.reorder_millionths)) {
    at += Duration(static_cast<Duration::rep>(
        random_.below(static_cast<std::uint64_t>(plan_.reorder_by.count()))));
  }
  datagram.past_bottleneck = true;
  push(at, std::move(datagram));
}

void Road::advance(Instant now, const std::function<void(std::size_t)>& arrived) {
  while (!heap_.empty() && heap_.front().at <= now) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    Event event = std::move(heap_.back());
    heap_.pop_back();
    now_ = event.at;
    if (!event.datagram.past_bottleneck) {
      enter_bottleneck(std::move(event.datagram));
      continue;
    }
    const std::uint32_t to = event.datagram.to;
    if (ports_[to]->arrive(std::move(event.datagram))) {
      arrived(to / 2);
    } else {
      ++socket_drops_;
    }
  }
  now_ = std::max(now_, now);
}

}  // namespace pullman::lab
