#include "sim/stranger.h"

#include <algorithm>
#include <array>

#include "sim/sim_port.h"

namespace pullman::sim {
namespace {

constexpr std::uint64_t kForgedEpoch = 0x5757'0000'0000'0000;
constexpr std::uint32_t kForgedProof = 0x1000'0000;
constexpr std::uint64_t kFirst = std::uint64_t{7} << 32;

}  // namespace

Stranger::Stranger(Scene& scene, std::size_t host) : scene_(scene), host_(host) {
  scene.node(host).end(true);
  scene.network().set_observer([this](const Passing& passing) {
    if (passing.to.host != host_ || passing.from.host == host_) return;
    const Opened opened(passing.bytes);
    if (!opened.header) return;
    Heard heard{.from = passing.from.host, .header = *opened.header, .hello = {}};
    if (opened.has(wire::FrameType::kHello)) {
      heard.hello = wire::decode_hello(opened.frames.front().data);
    }
    heard_.push_back(heard);
  });
}

wire::Hello Stranger::hello(std::size_t to) {
  return hello_as(host_, to);
}

wire::Hello Stranger::hello_as(std::size_t whom, std::size_t to) {
  const NodePlan& plan = scene_.node(host_).plan();
  const auto host = static_cast<std::uint8_t>(whom);
  const std::uint8_t kind = plan.command.address_kind;
  wire::Hello hello;
  hello.epoch = kForgedEpoch + ++serial_;
  hello.reply_to = {serial_, kForgedProof + serial_};
  hello.first_number = hello.first_message = kFirst;
  hello.allowance = 1 << 20;
  hello.eager_bytes = 1024;
  hello.credit = 64;
  hello.host = scene_.node(whom).identity();
  hello.nic_count = 1;
  hello.called = scene_.node(to).address();
  hello.nics[0] = {.command_packet_bytes = 1472,
                   .data_packet_bytes = 1472,
                   .mbps = 10000,
                   .command = address_of({host, Channel::kCommand}, kind),
                   .data = address_of({host, Channel::kData}, kind)};
  return hello;
}

void Stranger::say(std::size_t to, const wire::Hello& hello, const Shape& shape) {
  const std::size_t body = std::max(shape.body_bytes, wire::encoded_bytes(hello));
  const std::size_t length =
      wire::kHeaderBytes + wire::kFrameHeadBytes + body + shape.early_data.size();
  std::vector<std::byte> packet(length);
  wire::PacketHeader header;
  header.type = shape.type;
  header.length = static_cast<std::uint16_t>(length);
  header.to = shape.to;
  header.number = static_cast<std::uint32_t>(hello.first_number) + shape.repetition;
  wire::encode(header, packet.data());
  std::byte* out = packet.data() + wire::kHeaderBytes;
  out += wire::put_hello(out, body);
  wire::encode(hello, out);
  std::copy(shape.early_data.begin(), shape.early_data.end(), out + body);
  put(to, packet);
}

void Stranger::prove(std::size_t to, wire::ConnectionId id, const wire::Hello& hello) {
  std::array<std::byte, wire::kPingBytes> ping;
  wire::put_ping(ping.data());
  tell(to, id, hello, 100, ping);
}

void Stranger::tell(std::size_t to, wire::ConnectionId id, const wire::Hello& hello,
                    std::uint32_t behind, std::span<const std::byte> frames) {
  std::vector<std::byte> packet(wire::kHeaderBytes + frames.size());
  wire::PacketHeader header;
  header.type = wire::PacketType::kSequenced;
  header.length = static_cast<std::uint16_t>(packet.size());
  header.to = id;
  header.number = static_cast<std::uint32_t>(hello.first_number) + behind;
  wire::encode(header, packet.data());
  std::copy(frames.begin(), frames.end(), packet.data() + wire::kHeaderBytes);
  put(to, packet);
}

void Stranger::put(std::size_t to, std::span<const std::byte> packet) {
  const auto host = static_cast<std::uint8_t>(host_);
  scene_.network().inject({host, Channel::kCommand},
                          {static_cast<std::uint8_t>(to), Channel::kCommand}, packet, Duration(0));
}

std::size_t Stranger::heard(wire::PacketType type) const {
  return static_cast<std::size_t>(std::count_if(
      heard_.begin(), heard_.end(), [&](const Heard& heard) { return heard.header.type == type; }));
}

}  // namespace pullman::sim
