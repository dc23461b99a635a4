#include "nic/trace/pcapng.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace pullman::nic::trace {
namespace {

constexpr std::uint32_t kSection = 0x0A0D0D0A;
constexpr std::uint32_t kInterface = 1;
constexpr std::uint32_t kStatistics = 5;
constexpr std::uint32_t kEnhancedPacket = 6;
constexpr std::uint32_t kByteOrderMagic = 0x1A2B3C4D;

constexpr std::uint16_t kLinkRaw = 101;    // an IP header of either version
constexpr std::uint16_t kLinkUser0 = 147;  // a packet of ours

constexpr std::uint16_t kComment = 1;
constexpr std::uint16_t kApplication = 4;  // of a section
constexpr std::uint16_t kName = 2;         // of an interface, as those below
constexpr std::uint16_t kDescription = 3;
constexpr std::uint16_t kResolution = 9;
constexpr std::uint16_t kFlags = 2;     // of a packet
constexpr std::uint16_t kReceived = 4;  // of statistics
constexpr std::uint16_t kDropped = 5;

constexpr std::uint32_t kInbound = 1;
constexpr std::uint32_t kOutbound = 2;

constexpr std::uint8_t kInet = 4;  // kinds of addresses (wire.md 5.3)
constexpr std::uint8_t kInet6 = 6;
constexpr std::size_t kUdpBytes = 8;
constexpr std::uint8_t kUdp = 17;

std::size_t header_bytes(std::uint8_t family) {
  if (family == kInet) return 20 + kUdpBytes;
  if (family == kInet6) return 40 + kUdpBytes;
  return 0;
}

void store16(std::byte* out, std::size_t value) {
  out[0] = static_cast<std::byte>(value >> 8);
  out[1] = static_cast<std::byte>(value);
}

// The sum of RFC 1071, of an even number of bytes.
std::uint32_t checksum(std::span<const std::byte> bytes) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    sum += std::to_integer<std::uint32_t>(bytes[i]) << 8 |
           std::to_integer<std::uint32_t>(bytes[i + 1]);
  }
  while (sum > 0xFFFF) sum = (sum & 0xFFFF) + (sum >> 16);
  return ~sum & 0xFFFF;
}

// The address and the port, or zeros if there is none of that family.
void put_end(const Address* address, std::uint8_t family, std::byte* host, std::byte* port) {
  if (address == nullptr || address->kind != family) return;
  const std::size_t bytes = family == kInet ? 4 : 16;
  std::memcpy(host, address->bytes.data(), bytes);
  std::memcpy(port, address->bytes.data() + bytes, 2);
}

using Headers = std::array<std::byte, 48>;

// Makes up the IP and UDP headers of a packet; returns their length.
std::size_t make_headers(const PcapngPacket& packet, std::uint8_t family, Headers& out) {
  const std::size_t bytes = header_bytes(family);
  if (bytes == 0) return 0;
  std::byte* const udp = out.data() + bytes - kUdpBytes;
  if (family == kInet) {
    out[0] = std::byte{0x45};
    store16(&out[2], bytes + packet.length);
    out[6] = std::byte{0x40};  // it was not to be fragmented
    out[8] = std::byte{64};
    out[9] = std::byte{kUdp};
    put_end(packet.source, family, &out[12], udp);
    put_end(packet.destination, family, &out[16], udp + 2);
    store16(&out[10], checksum(std::span(out).first(20)));
  } else {
    out[0] = std::byte{0x60};
    store16(&out[4], kUdpBytes + packet.length);
    out[6] = std::byte{kUdp};
    out[7] = std::byte{64};
    put_end(packet.source, family, &out[8], udp);
    put_end(packet.destination, family, &out[24], udp + 2);
    // Over IPv6 there is no UDP without a checksum; it is not computed, since most of the packet
    // may be missing.
    store16(udp + 6, 0xFFFF);
  }
  store16(udp + 4, kUdpBytes + packet.length);
  return bytes;
}

}  // namespace

PcapngWriter::PcapngWriter(std::FILE* out, std::string_view application, std::string_view comment)
    : out_(out) {
  begin(kSection);
  put32(kByteOrderMagic);
  put16(1);  // version 1.0
  put16(0);
  put32(~0u);  // the length of the section is not known
  put32(~0u);
  put_option(kApplication, application);
  if (!comment.empty()) put_option(kComment, comment);
  finish();
}

void PcapngWriter::add_interface(const PcapngInterface& interface) {
  const std::size_t headers = header_bytes(interface.address.kind);
  families_.push_back(interface.address.kind);
  begin(kInterface);
  put16(headers == 0 ? kLinkUser0 : kLinkRaw);
  put16(0);
  put32(interface.snap_bytes == 0 ? 0 : static_cast<std::uint32_t>(headers + interface.snap_bytes));
  put_option(kName, interface.name);
  put_option(kDescription, interface.description);
  constexpr std::byte kNanoseconds{9};
  put_option(kResolution, {&kNanoseconds, 1});
  finish();
}

void PcapngWriter::write(const PcapngPacket& packet) {
  Headers headers{};
  const std::size_t before = make_headers(packet, families_[packet.interface], headers);
  begin(kEnhancedPacket);
  put32(packet.interface);
  put_time(packet.time_ns);
  put32(static_cast<std::uint32_t>(before + packet.bytes.size()));
  put32(static_cast<std::uint32_t>(before + packet.length));
  block_.insert(block_.end(), headers.begin(), headers.begin() + before);
  put_bytes(packet.bytes);
  const std::uint32_t direction = packet.sent ? kOutbound : kInbound;
  put_option(kFlags, std::as_bytes(std::span(&direction, 1)));
  if (!packet.comment.empty()) put_option(kComment, packet.comment);
  finish();
}

void PcapngWriter::write(const PcapngStatistics& statistics) {
  begin(kStatistics);
  put32(statistics.interface);
  put_time(statistics.time_ns);
  put_option64(kReceived, statistics.received);
  put_option64(kDropped, statistics.dropped);
  finish();
}

int PcapngWriter::finish_file() {
  if (std::fflush(out_) != 0) note_error();
  return error_;
}

void PcapngWriter::note_error() {
  if (error_ == 0) error_ = errno != 0 ? errno : EIO;
}

// Numbers are in the order of this host's bytes, as the magic says.
void PcapngWriter::put16(std::uint16_t value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  block_.insert(block_.end(), bytes.begin(), bytes.end());
}

void PcapngWriter::put32(std::uint32_t value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  block_.insert(block_.end(), bytes.begin(), bytes.end());
}

// Pads to four bytes, as all of a block.
void PcapngWriter::put_bytes(std::span<const std::byte> bytes) {
  block_.insert(block_.end(), bytes.begin(), bytes.end());
  block_.resize((block_.size() + 3) / 4 * 4);
}

void PcapngWriter::put_time(std::int64_t ns) {
  put32(static_cast<std::uint32_t>(static_cast<std::uint64_t>(ns) >> 32));
  put32(static_cast<std::uint32_t>(ns));
}

void PcapngWriter::put_option(std::uint16_t code, std::span<const std::byte> value) {
  constexpr std::size_t kMost = 0xFFFF;
  value = value.first(std::min(value.size(), kMost));
  put16(code);
  put16(static_cast<std::uint16_t>(value.size()));
  put_bytes(value);
}

void PcapngWriter::put_option(std::uint16_t code, std::string_view text) {
  put_option(code, std::as_bytes(std::span(text)));
}

void PcapngWriter::put_option64(std::uint16_t code, std::uint64_t value) {
  put_option(code, std::as_bytes(std::span(&value, 1)));
}

void PcapngWriter::begin(std::uint32_t type) {
  block_.clear();
  put32(type);
  put32(0);  // its length, which finish() knows
}

// Every block here has options, which end by one of length 0.
void PcapngWriter::finish() {
  put32(0);
  const auto length = static_cast<std::uint32_t>(block_.size() + sizeof(std::uint32_t));
  std::memcpy(block_.data() + sizeof length, &length, sizeof length);
  put32(length);
  if (std::fwrite(block_.data(), 1, block_.size(), out_) != block_.size()) note_error();
}

}  // namespace pullman::nic::trace
