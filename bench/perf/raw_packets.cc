#include <algorithm>
#include <cstring>

#include "payload.h"
#include "raw_patterns.h"

namespace perf {

namespace {

constexpr int kMaxTries = 1'000'000;  // to send one packet, about a second

}  // namespace

RawPackets::RawPackets(RawNic& nic, const Job& job) : nic_(nic), job_(job) {
  // A datagram of no bytes is not a thing every provider reports: at least one.
  const std::size_t size = std::max<std::size_t>(1, job.size);
  const std::size_t packet = nic.packet_bytes();
  per_message_ = (size + packet - 1) / packet;
  last_ = size - (per_message_ - 1) * packet;
  // A last packet too short for a label is filled up, so that every packet of a stream has one.
  if (per_message_ > 1) last_ = std::max(last_, sizeof(Label));
  shortest_ = last_;
}

std::size_t RawPackets::length_of(std::uint64_t index) const {
  return (index + 1) % per_message_ == 0 ? last_ : nic_.packet_bytes();
}

bool RawPackets::send(std::uint32_t round, std::uint64_t index) {
  const std::size_t length = length_of(index);
  const std::span<std::byte> packet = nic_.outgoing().first(length);
  if (!labelled()) {
    if (job_.check) fill(packet, {job_.run, 0, false});
    return push(length);
  }
  const Label label{round, static_cast<std::uint32_t>(index)};
  std::memcpy(packet.data(), &label, sizeof label);
  if (job_.check) fill(packet.subspan(sizeof label), {job_.run, label.index, false});
  return push(length);
}

bool RawPackets::send_word(std::uint32_t round) {
  const Label label{round, 0};
  std::memcpy(nic_.outgoing().data(), &label, sizeof label);
  const bool sent = push(sizeof label);
  flush();
  return sent;
}

void RawPackets::flush() {
  for (int tries = 0; tries < kMaxTries && !nic_.flush(); ++tries) {
  }
}

bool RawPackets::bursts() const {
  if (per_message_ > 1) return true;
  return job_.test != Test::kLatency && (job_.test != Test::kRate || job_.window > 1);
}

bool RawPackets::push(std::size_t length) {
  for (int tries = 0; tries < kMaxTries; ++tries) {
    if (nic_.send(length)) return true;
  }
  return false;
}

RawPackets::Label RawPackets::label_of(std::span<const std::byte> packet) {
  Label label;
  if (packet.size() >= sizeof label) std::memcpy(&label, packet.data(), sizeof label);
  return label;
}

bool RawPackets::right(std::span<const std::byte> packet) const {
  if (!job_.check) return true;
  if (!labelled()) return packet.size() == last_ && holds(packet, {job_.run, 0, false});
  if (packet.size() < sizeof(Label)) return false;
  const Label label = label_of(packet);
  return packet.size() == length_of(label.index) &&
         holds(packet.subspan(sizeof label), {job_.run, label.index, false});
}

}  // namespace perf
