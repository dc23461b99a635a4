#include "micro/memory_nic.h"

#include <algorithm>
#include <cstring>

namespace pullman::bench {
namespace {

// As the udp driver's over Ethernet, MTU 1500.
constexpr std::size_t kCommandBytes = 816;
constexpr std::size_t kDataBytes = 1472;

class MemoryPort final : public nic::Port {
 public:
  MemoryPort(MemoryNetwork& network, Mailbox& mailbox, const nic::Address& address)
      : network_(network), mailbox_(mailbox), address_(address) {
    limits_ = {.packet_bytes = mailbox.packet_bytes(),
               .receive_packets = Mailbox::kCapacity,
               .burst_bytes = 65507};
  }

  std::size_t send(std::span<const nic::Outgoing> batch) override {
    for (const nic::Outgoing& packet : batch) {
      network_.count(network_.mailbox(packet.to).put(packet));
    }
    counters_.sent += batch.size();
    return batch.size();
  }
  std::size_t receive(std::span<nic::Incoming> batch, std::size_t enough) override {
    const std::size_t count = mailbox_.take(batch.first(enough));
    counters_.received += count;
    return count;
  }
  void give_back(std::span<const nic::Incoming> batch) override {
    mailbox_.give_back(batch.size());
  }
  void resolve(const nic::Address& address, std::uint64_t cookie) override {
    const nic::Destination to = network_.find(address);
    const auto kind = to == nic::kInvalidDestination ? nic::PortEvent::Kind::kResolveFailed
                                                     : nic::PortEvent::Kind::kResolved;
    resolved_.push_back({.kind = kind, .cookie = cookie, .to = to});
  }
  void forget(nic::Destination) override {}
  std::size_t poll_events(std::span<nic::PortEvent> events) override {
    const std::size_t count = std::min(events.size(), resolved_.size());
    if (count == 0) return 0;
    const auto end = resolved_.begin() + static_cast<std::ptrdiff_t>(count);
    std::copy(resolved_.begin(), end, events.begin());
    resolved_.erase(resolved_.begin(), end);
    return count;
  }
  const nic::PortLimits& limits() const override { return limits_; }
  const nic::PortCounters& counters() const override { return counters_; }
  const nic::Address& address() const override { return address_; }
  int wait_fd() override { return -1; }

 private:
  MemoryNetwork& network_;
  Mailbox& mailbox_;
  nic::Address address_;
  nic::PortLimits limits_;
  nic::PortCounters counters_;
  std::vector<nic::PortEvent> resolved_;
};

}  // namespace

bool Mailbox::put(const nic::Outgoing& packet) {
  if (letters_.empty()) letters_.resize(kCapacity);
  if (written_ - returned_ == kCapacity) return false;
  Letter& letter = letters_[written_ % kCapacity];
  if (letter.bytes == nullptr) letter.bytes.reset(new std::byte[packet_bytes_]);
  std::memcpy(letter.bytes.get(), packet.head.data(), packet.head.size());
  if (!packet.payload.empty()) {
    std::memcpy(letter.bytes.get() + packet.head.size(), packet.payload.data(),
                packet.payload.size());
  }
  letter.length = packet.head.size() + packet.payload.size();
  ++written_;
  return true;
}

std::size_t Mailbox::take(std::span<nic::Incoming> batch) {
  std::size_t count = 0;
  for (; count < batch.size() && read_ != written_; ++count, ++read_) {
    const Letter& letter = letters_[read_ % kCapacity];
    batch[count] = {.bytes = {letter.bytes.get(), letter.length}, .buffer = read_};
  }
  return count;
}

void Mailbox::clear() {
  letters_ = std::vector<Letter>();
  written_ = read_ = returned_ = 0;
}

MemoryNetwork::MemoryNetwork(std::size_t hosts) {
  mailboxes_.reserve(2 * hosts);
  for (std::size_t i = 0; i < hosts; ++i) {
    mailboxes_.emplace_back(kCommandBytes);
    mailboxes_.emplace_back(kDataBytes);
  }
}

std::unique_ptr<nic::Port> MemoryNetwork::open(std::size_t host, Channel channel) {
  return std::make_unique<MemoryPort>(*this, mailbox(host, channel), address_of(host, channel));
}

// 10.x.y.z with the host's number in the last three bytes; port 1 or 2.
nic::Address MemoryNetwork::address_of(std::size_t host, Channel channel) {
  nic::Address address;
  address.kind = 4;
  address.length = 6;
  address.bytes[0] = std::byte{10};
  for (std::size_t i = 1; i <= 3; ++i) {
    address.bytes[i] = static_cast<std::byte>(host >> (8 * (3 - i)));
  }
  address.bytes[5] = static_cast<std::byte>(1 + static_cast<unsigned>(channel));
  return address;
}

nic::Destination MemoryNetwork::find(const nic::Address& address) const {
  const auto byte = [&](std::size_t i) { return std::to_integer<std::size_t>(address.bytes[i]); };
  const std::size_t host = byte(1) << 16 | byte(2) << 8 | byte(3);
  const nic::Destination at = 2 * host + byte(5) - 1;
  return at < mailboxes_.size() ? at : nic::kInvalidDestination;
}

}  // namespace pullman::bench
