// The last packets of all ports of a context, in memory that is allocated once: when, which way, by
// which port, how long, and their first bytes.
//
// Does not know a clock: it reads the time of the turn where its owner keeps it. Does not know what
// packets mean, and opens none: what is encrypted stays so. Threads: one at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "nic/port.h"

namespace pullman::nic::trace {

// One packet.
struct Record {
  static constexpr std::size_t kSnapBytes = 128;  // headers, and a HELLO's fixed part

  Instant at{};                          // the turn
  Destination to = kInvalidDestination;  // of one that was sent
  std::uint32_t length = 0;              // of the whole packet
  std::uint16_t port = 0;
  std::uint8_t kept = 0;  // how many of its bytes follow
  bool sent = false;      // otherwise it was received
  std::byte bytes[kSnapBytes];

  std::span<const std::byte> kept_bytes() const { return {bytes, kept}; }
};
static_assert(sizeof(Record) == 152);

// A port whose packets are recorded.
struct TracedPortInfo {
  std::string name;         // of its NIC and channel
  std::string description;  // its driver
  Address address;
};

class Ring {
 public:
  static constexpr std::size_t kMaxPorts = 1024;

  // Takes at most `bytes`. `now` outlives it: the time of the turn that is being made.
  Ring(std::size_t bytes, const Instant& now);

  // Returns the number of a port; the same for one of the same name and address. Nothing if there
  // are too many: NICs that come and go with new addresses must not take more and more memory.
  std::optional<std::uint16_t> add_port(TracedPortInfo info);

  void note_sent(std::uint16_t port, std::span<const Outgoing> packets) {
    Record* at = next_;
    for (const Outgoing& packet : packets) {
      begin(*at, port, packet.head.size() + packet.payload.size());
      at->sent = true;
      at->to = packet.to;
      std::size_t kept = keep(at->bytes, packet.head, Record::kSnapBytes);
      if (!packet.payload.empty()) {
        kept += keep(at->bytes + kept, packet.payload, Record::kSnapBytes - kept);
      }
      at->kept = static_cast<std::uint8_t>(kept);
      if (++at == end_) at = records_.get();
    }
    next_ = at;
    recorded_[port] += packets.size();
  }
  void note_received(std::uint16_t port, std::span<const Incoming> packets) {
    Record* at = next_;
    for (const Incoming& packet : packets) {
      begin(*at, port, packet.bytes.size());
      at->sent = false;
      at->kept = static_cast<std::uint8_t>(keep(at->bytes, packet.bytes, Record::kSnapBytes));
      if (++at == end_) at = records_.get();
    }
    next_ = at;
    recorded_[port] += packets.size();
  }

  // Notes what a destination of a port means from now on.
  void note_resolved(std::uint16_t port, Destination to, const Address& address);

  std::span<const TracedPortInfo> ports() const { return ports_; }
  std::size_t capacity() const { return capacity_; }
  // How many packets there have been, of all ports or of one.
  std::uint64_t recorded() const;
  std::uint64_t recorded(std::uint16_t port) const { return recorded_[port]; }
  // How many records there are: the last ones.
  std::size_t kept() const;
  // The records there are, the oldest first.
  const Record& record(std::size_t index) const;
  // Where that record was sent; null: it was received, or is not known any more.
  const Address* destination(std::size_t index) const;

 private:
  // What a destination has meant since a record. Drivers give a destination another meaning when it
  // was forgotten.
  struct Meaning {
    std::uint64_t since = 0;
    Address address;
  };
  struct Free {
    std::size_t count;
    void operator()(Record* records) const { std::allocator<Record>().deallocate(records, count); }
  };
  static constexpr std::size_t kMaxMeanings = 8;           // of one destination
  static constexpr std::size_t kMaxDestinations = 65'536;  // later ones are not known

  void begin(Record& record, std::uint16_t port, std::size_t length) const {
    record.at = *now_;
    record.length = static_cast<std::uint32_t>(length);
    record.port = port;
  }
  static std::size_t keep(std::byte* to, std::span<const std::byte> from, std::size_t most) {
    const std::size_t count = from.size() < most ? from.size() : most;
    copy(to, from.data(), count);
    return count;
  }
  // Copies with two moves of a fixed size, which may overlap: of a length that it does not know the
  // compiler makes `rep movs`, which costs a traced packet a quarter more
  // (link/traced/ping_pong_64).
  static void copy(std::byte* to, const std::byte* from, std::size_t count) {
    static_assert(Record::kSnapBytes <= 128);
    if (count >= 64) return copy_ends<64>(to, from, count);
    if (count >= 32) return copy_ends<32>(to, from, count);
    if (count >= 16) return copy_ends<16>(to, from, count);
    if (count >= 8) return copy_ends<8>(to, from, count);
    for (std::size_t i = 0; i < count; ++i) to[i] = from[i];
  }
  template <std::size_t kBytes>
  static void copy_ends(std::byte* to, const std::byte* from, std::size_t count) {
    std::memcpy(to, from, kBytes);
    std::memcpy(to + count - kBytes, from + count - kBytes, kBytes);
  }

  const Instant* now_;
  std::size_t capacity_;
  std::unique_ptr<Record[], Free> records_;
  Record* next_;  // the place of the next record
  Record* end_;   // behind the last place
  std::vector<TracedPortInfo> ports_;
  std::array<std::uint64_t, kMaxPorts> recorded_{};  // packets of each port, since the start
  std::map<std::pair<std::uint16_t, Destination>, std::vector<Meaning>> meanings_;
};

}  // namespace pullman::nic::trace
