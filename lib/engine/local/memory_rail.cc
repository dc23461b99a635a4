#include "engine/local/memory_rail.h"

#include <bit>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace pullman::engine {

using channel::Packet;

namespace {

// A reference begins with these, which have no byte order: both ends are on one host.
struct Place {
  std::uint64_t address;
  std::uint64_t length;
};

}  // namespace

MemoryRail::~MemoryRail() {
  PULLMAN_DCHECK(in_flight() == 0);
}

void MemoryRail::post(Packet& packet) {
  PULLMAN_DCHECK(has_room() && packet.rest == 0);
  answered_ = false;
  if (!write(packet)) waiting_ = &packet;
}

bool MemoryRail::write_waiting() {
  if (!write(*waiting_)) return false;
  waiting_ = nullptr;
  return true;
}

bool MemoryRail::write(Packet& packet) {
  const std::span<const std::byte> body = packet.body();
  const bool refers = this->refers(packet);
  const std::size_t lead = refers ? sizeof(Place) : 0;
  const std::size_t copied = refers ? 0 : packet.payload_bytes;
  std::byte* place = pair_.out().reserve(lead + body.size() + copied);
  if (place == nullptr) return false;
  if (refers) {
    const Place at{std::bit_cast<std::uint64_t>(packet.payload), packet.payload_bytes};
    std::memcpy(place, &at, sizeof at);
  }
  std::memcpy(place + lead, body.data(), body.size());
  if (copied != 0) std::memcpy(place + lead + body.size(), packet.payload, copied);
  pair_.out().commit(refers);
  packet.number = pair_.out().position();
  in_flight_.push_back(packet);
  news_ = true;
  return true;
}

std::optional<MemoryRail::Reference> MemoryRail::reference(std::span<const std::byte> record) {
  Place at;
  if (record.size() < sizeof at) return std::nullopt;
  std::memcpy(&at, record.data(), sizeof at);
  return Reference{at.address, at.length, record.subspan(sizeof at)};
}

Packet* MemoryRail::take_read() {
  if (in_flight_.empty() || in_flight_.front().number > pair_.out().done()) return nullptr;
  Packet& packet = in_flight_.front();
  in_flight_.pop_front();
  return &packet;
}

Packet* MemoryRail::take_unread() {
  if (in_flight_.empty()) return std::exchange(waiting_, nullptr);
  Packet& packet = in_flight_.front();
  in_flight_.pop_front();
  return &packet;
}

bool MemoryRail::must_wake() {
  return std::exchange(news_, false) && pair_.must_wake();
}

MemoryRail::MayBlock MemoryRail::prepare_to_block(bool record_stays) {
  const bool anew = pair_.set_sleeping();
  sleeps_ = true;
  const bool was_read = !in_flight_.empty() && in_flight_.front().number <= pair_.out().done();
  if (was_read || (!record_stays && pair_.has_news())) return MayBlock::kNo;
  return anew ? MayBlock::kBriefly : MayBlock::kYes;
}

// The peer says that it has ended after its last record, so that has to be asked first.
bool MemoryRail::is_over() {
  if (pair_.in().is_corrupt()) return true;
  return pair_.has_ended() && !pair_.in().front();
}

}  // namespace pullman::engine
