// Any bytes at all as a datagram: decoding neither crashes nor reads beyond it, and what is
// accepted encodes to the same bytes again.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "wire/check.h"
#include "wire/frame.h"
#include "wire/header.h"
#include "wire/hello.h"
#include "wire/relay.h"

namespace {

using namespace pullman::wire;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_bulk(std::span<const std::byte> packet) {
  Frame frame;
  if (!read_bulk(packet, frame)) return;
  require(frame.data.data() == packet.data() + kBulkHeadBytes);
  require(!frame.data.empty() && frame.data.size() == packet.size() - kBulkHeadBytes);
  require(frame.offset + frame.data.size() <= kMaxMessageBytes && frame.total == 0);
  std::byte again[kBulkHeadBytes - kBulkHeaderBytes];
  require(put_bulk(again, frame) == sizeof again);
  require(std::memcmp(again, packet.data() + kBulkHeaderBytes, sizeof again) == 0);
}

void check_header(std::span<const std::byte> datagram) {
  PacketHeader header;
  if (decode(datagram, header) != Verdict::kAccepted) return;
  std::byte again[kHeaderBytes];
  encode(header, again);
  require(std::memcmp(again, datagram.data(), header_bytes(header.type)) == 0);
  if (header.type == PacketType::kBulk) check_bulk(datagram);
  if (header.has(kFlagChecksum)) static_cast<void>(checksum_holds(datagram, header));
}

void check_hello(std::span<const std::byte> body) {
  const auto hello = decode_hello(body);
  if (!hello) return;
  require(encoded_bytes(*hello) <= body.size());
  std::vector<std::byte> again(encoded_bytes(*hello));
  encode(*hello, again.data());
  require(std::memcmp(again.data(), body.data(), again.size()) == 0);
}

void check_relay(std::span<const std::byte> message) {
  std::span<const std::byte> packet = message;
  const auto head = take_relay(packet);
  if (!head) return;
  std::vector<std::byte> again(relay_bytes(*head));
  require(again.size() <= kMaxRelayBytes && !packet.empty());
  require(put_relay(again.data(), *head) == again.data() + again.size());
  require(std::memcmp(again.data(), message.data(), again.size()) == 0);
  require(packet.data() == message.data() + again.size());
}

// As a CHECK and as a CHECKED: what is read is written again as it was, padding included.
void check_checks(const Frame& frame) {
  std::vector<std::byte> again(kCheckHeadBytes + frame.data.size());
  const auto same = [&] {
    require(frame.data.empty() ||
            std::memcmp(again.data() + kCheckHeadBytes, frame.data.data(), frame.data.size()) == 0);
  };
  if (const auto check = decode_check(frame.data)) {
    put_check(again, *check);
    same();
  }
  if (auto checked = decode_checked(frame.data)) {
    put_checked(again, *checked);
    same();
  }
}

// What has a lead has room for it, and leads are written again as they were read.
void check_kind(const Frame& frame) {
  if (frame.type != FrameType::kMessage) {
    const bool announced = frame.type == FrameType::kEnvelope;
    require(frame.kind == 0 || announced || frame.type == FrameType::kChunk);
    if (announced) {
      require(may_be_announced(frame.kind, frame.total));
      require(frame.data.size() == lead_bytes(frame.kind));
    }
    return;
  }
  const std::size_t lead = lead_bytes(frame.kind);
  require(frame.data.size() >= lead && needed(frame.kind, frame.data.size()) <= frame.data.size());
  Lead again{};
  std::size_t written = 0;
  switch (class_of(frame.kind)) {
    case Class::kMessage:
      written = lead == 0 ? 0 : put_immediate(again.data(), read_immediate(frame.data.data()));
      break;
    case Class::kPut:
      written =
          put_put_lead(again.data(), frame.kind, read_put_lead(frame.data.data(), frame.kind));
      break;
    case Class::kGet:
      written = put_get_lead(again.data(), read_get_lead(frame.data.data()));
      break;
    case Class::kAtomic:
      if (const auto atomic = read_atomic_lead(frame.data.data())) {
        written = put_atomic_lead(again.data(), *atomic);
      } else {
        return;
      }
      break;
    case Class::kAnswer:
      break;
  }
  require(written == lead &&
          (lead == 0 || std::memcmp(again.data(), frame.data.data(), lead) == 0));
}

void check_frames(std::span<const std::byte> body) {
  FrameReader reader(body);
  Frame frame;
  while (reader.next(frame)) {
    require(frame.data.empty() ||
            (frame.data.data() >= body.data() &&
             frame.data.data() + frame.data.size() <= body.data() + body.size()));
    if (frame.type == FrameType::kChunk) require(frame.data.size() <= frame.total - frame.offset);
    check_kind(frame);
    if (frame.type == FrameType::kHello) check_hello(frame.data);
    check_checks(frame);
    if (frame.type == FrameType::kSack) {
      for (std::size_t w = 0; w < frame.data.size() / 8; ++w)
        static_cast<void>(sack_word(frame.data, w));
    }
  }
  require(reader.ok() == well_formed(body));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  check_header(bytes);
  check_hello(bytes);
  check_relay(bytes);
  check_frames(bytes);
  if (size > kHeaderBytes) check_frames(bytes.subspan(kHeaderBytes));
  return 0;
}
