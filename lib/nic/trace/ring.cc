#include "nic/trace/ring.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace pullman::nic::trace {

// The records are not made before there are packets: a process that sends little does not touch
// all of the memory.
Ring::Ring(std::size_t bytes, const Instant& now)
    : now_(&now),
      capacity_(std::max<std::size_t>(bytes / sizeof(Record), 1)),
      records_(std::allocator<Record>().allocate(capacity_), Free{capacity_}),
      next_(records_.get()),
      end_(records_.get() + capacity_) {}

std::optional<std::uint16_t> Ring::add_port(TracedPortInfo info) {
  const auto same = std::find_if(ports_.begin(), ports_.end(), [&](const TracedPortInfo& port) {
    return port.name == info.name && port.address == info.address;
  });
  if (same != ports_.end()) return static_cast<std::uint16_t>(same - ports_.begin());
  if (ports_.size() == kMaxPorts) return std::nullopt;
  ports_.push_back(std::move(info));
  return static_cast<std::uint16_t>(ports_.size() - 1);
}

void Ring::note_resolved(std::uint16_t port, Destination to, const Address& address) {
  const auto known = meanings_.find({port, to});
  if (known == meanings_.end()) {
    if (meanings_.size() == kMaxDestinations) return;
    meanings_.try_emplace({port, to}, std::vector<Meaning>{{recorded(), address}});
    return;
  }
  std::vector<Meaning>& meanings = known->second;
  if (meanings.back().address == address) return;
  if (meanings.size() == kMaxMeanings) meanings.erase(meanings.begin());
  meanings.push_back({recorded(), address});
}

std::uint64_t Ring::recorded() const {
  return std::accumulate(recorded_.begin(), recorded_.begin() + std::ssize(ports_),
                         std::uint64_t{0});
}

std::size_t Ring::kept() const {
  return static_cast<std::size_t>(std::min<std::uint64_t>(recorded(), capacity_));
}

const Record& Ring::record(std::size_t index) const {
  const auto next = static_cast<std::size_t>(next_ - records_.get());
  const std::size_t oldest = kept() < capacity_ ? 0 : next;
  return records_[(oldest + index) % capacity_];
}

const Address* Ring::destination(std::size_t index) const {
  const Record& of = record(index);
  if (!of.sent) return nullptr;
  const auto known = meanings_.find({of.port, of.to});
  if (known == meanings_.end()) return nullptr;
  const std::uint64_t number = recorded() - kept() + index;
  const std::vector<Meaning>& meanings = known->second;
  const auto later = std::find_if(meanings.begin(), meanings.end(),
                                  [&](const Meaning& meaning) { return meaning.since > number; });
  return later == meanings.begin() ? nullptr : &std::prev(later)->address;
}

}  // namespace pullman::nic::trace
