#include "sim/trace.h"

#include <fmt/format.h>

#include "sim/packet_view.h"
#include "sim/sim_port.h"
#include "wire/frame.h"
#include "wire/hello.h"

namespace pullman::sim {
namespace {

using wire::FrameType;

std::string time_of(Instant at) {
  return fmt::format("{:12.6f} ms", static_cast<double>(at.time_since_epoch().count()) / 1e6);
}

// Returns the host, with its NIC if that is not the first.
std::string place_of(Endpoint at) {
  return at.nic == 0 ? fmt::format("{}", at.host) : fmt::format("{}.{}", at.host, at.nic);
}

const char* name(wire::PacketType type) {
  switch (type) {
    case wire::PacketType::kSequenced:
      return "seq";
    case wire::PacketType::kControl:
      return "ctl";
    case wire::PacketType::kHello:
      return "HELLO";
    case wire::PacketType::kWelcome:
      return "WELCOME";
    case wire::PacketType::kBulk:
      return "bulk";
    case wire::PacketType::kCheck:
      return "check";
  }
  return "?";
}

std::string describe(const wire::PacketHeader& header) {
  std::string text =
      fmt::format("{} to {}/{:08x} #{} floor -{}", name(header.type), header.to.index,
                  header.to.proof, header.number, header.floor_distance);
  if (header.rail != 0) text += fmt::format(" rail {}", header.rail);
  if (header.has(wire::kFlagAck)) {
    text += fmt::format(" ack {} credit {}", header.cumulative, header.credit);
    if (header.hold != wire::kHoldUnknown) {
      text += fmt::format(" held {} ns", header.hold * wire::kHoldUnitNs);
    }
  }
  return text;
}

std::string describe_sack(const wire::Frame& frame) {
  std::string text = fmt::format("sack from {}:", frame.id);
  for (std::size_t word = 0; word < frame.data.size() / 8; ++word) {
    text += fmt::format(" {:x}", wire::sack_word(frame.data, word));
  }
  return text;
}

std::string describe_hello(const wire::Frame& frame) {
  const auto hello = wire::decode_hello(frame.data);
  if (!hello) return "hello MALFORMED";
  return fmt::format(
      "hello epoch {:x} reply to {}/{:08x} first #{} message {} allowance {} credit {}",
      hello->epoch, hello->reply_to.index, hello->reply_to.proof, hello->first_number,
      hello->first_message, hello->allowance, hello->credit);
}

std::string describe_kind(std::uint8_t kind) {
  return kind == 0 ? "" : fmt::format(" of kind {:02x}", kind);
}

std::string describe(const wire::Frame& frame) {
  switch (frame.type) {
    case FrameType::kMessage:
      return fmt::format("message {}{} tag {:x}, {} B", frame.id, describe_kind(frame.kind),
                         frame.tag, frame.data.size());
    case FrameType::kChunk:
      return fmt::format("chunk of {}{} tag {:x}, {}+{} of {}", frame.id, describe_kind(frame.kind),
                         frame.tag, frame.offset, frame.data.size(), frame.total);
    case FrameType::kGrant:
      return fmt::format("grant {} to {}", frame.id, frame.limit);
    case FrameType::kAllowance:
      return fmt::format("allowance {}, whole messages {}", frame.limit, frame.total);
    case FrameType::kBlocked:
      return fmt::format("blocked at {}", frame.limit);
    case FrameType::kEnvelope:
      return fmt::format("envelope {}{} tag {:x}, {} B", frame.id, describe_kind(frame.kind),
                         frame.tag, frame.total);
    case FrameType::kNics:
      return fmt::format("NICs, {} B", frame.data.size());
    case FrameType::kMemory:
      return fmt::format("memory, {} B", frame.data.size());
    case FrameType::kSack:
      return describe_sack(frame);
    case FrameType::kHello:
      return describe_hello(frame);
    case FrameType::kPing:
      return "ping";
    case FrameType::kBye:
      return fmt::format("BYE, all below {}, {} words more", frame.id, frame.data.size() / 8);
    case FrameType::kPadding:
      return fmt::format("padding, {} B", frame.data.size());
    case FrameType::kWays:
      return fmt::format("ways, {} B", frame.data.size());
    case FrameType::kRail:
      return fmt::format("rail {} {} ({})", frame.limit >> 8, frame.limit & 0xFF, frame.id);
    case FrameType::kCheck:
      return fmt::format("check, {} B", frame.data.size());
    case FrameType::kChecked:
      return fmt::format("checked, {} B", frame.data.size());
    case FrameType::kResult:
      return fmt::format("result {}: {}", frame.id, frame.limit);
  }
  return "?";
}

}  // namespace

std::string describe(const Passing& passing) {
  std::string text = fmt::format(
      "{} {}>{} {} {:5} B ", time_of(passing.sent), place_of(passing.from), place_of(passing.to),
      passing.to.channel == Channel::kCommand ? "cmd " : "data", passing.bytes.size());
  const PacketView view(passing.bytes);
  const wire::PacketHeader& header = view.header;
  if (view.accepted() && !view.readable()) {
    text += describe(header) + " | encrypted";
  } else if (view.accepted()) {
    text += describe(header);
    const auto frames = header.type == wire::PacketType::kBulk
                            ? std::span<const std::byte>()
                            : view.packet.subspan(wire::kHeaderBytes);
    wire::FrameReader reader(frames);
    wire::Frame frame;
    while (reader.next(frame)) text += " | " + describe(frame);
    if (header.type == wire::PacketType::kBulk && wire::read_bulk(view.packet, frame)) {
      text += fmt::format(" | of {}, {}+{}", frame.id, frame.offset, frame.data.size());
    } else if (header.type == wire::PacketType::kBulk || !reader.ok()) {
      text += " | MALFORMED";
    }
  } else {
    text += fmt::format("undecodable: {}", wire::name(view.verdict));
  }
  text += fmt::format(" -> {}", name(passing.fate));
  if (passing.arrival != kNever && passing.arrival != passing.sent) {
    text += fmt::format(" after {:.3f} us",
                        static_cast<double>((passing.arrival - passing.sent).count()) / 1e3);
  }
  return text;
}

Capture::Capture(std::FILE* out, std::size_t hosts, std::uint8_t address_kind)
    : hosts_(hosts), address_kind_(address_kind) {
  if (out == nullptr) return;
  writer_.emplace(out, "pullman-sim", "");
  for (std::uint8_t nic = 0; nic < kMaxNics; ++nic) {
    for (std::uint8_t host = 0; host < hosts; ++host) {
      for (const Channel channel : {Channel::kCommand, Channel::kData}) {
        const Endpoint at{host, channel, nic};
        writer_->add_interface(
            {.name = fmt::format("host {}.{} {}", host, nic,
                                 channel == Channel::kCommand ? "command" : "data"),
             .description = "simulated",
             .address = address_of(at, address_kind)});
      }
    }
  }
}

std::uint32_t Capture::interface_of(Endpoint at) const {
  return static_cast<std::uint32_t>((at.nic * hosts_ + at.host) * 2 +
                                    static_cast<std::size_t>(at.channel));
}

void Capture::packet(const Passing& passing) {
  // What overflows a receiver has been seen before, when it was sent.
  if (passing.fate == Fate::kInjected || passing.fate == Fate::kOverflowed) return;
  const nic::Address from = address_of(passing.from, address_kind_);
  const nic::Address to = address_of(passing.to, address_kind_);
  writer_->write({.interface = interface_of(passing.from),
                  .time_ns = passing.sent.time_since_epoch().count(),
                  .sent = true,
                  .source = &from,
                  .destination = &to,
                  .bytes = passing.bytes,
                  .length = passing.bytes.size(),
                  .comment = passing.fate == Fate::kArrives ? "" : name(passing.fate)});
}

void Trace::packet(const Passing& passing) {
  if (on()) fmt::print(out_, "{}\n", describe(passing));
}

void Trace::note(Instant now, const std::string& text) {
  if (on()) fmt::print(out_, "{} {}\n", time_of(now), text);
}

}  // namespace pullman::sim
