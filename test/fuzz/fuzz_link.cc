// Two engines and an adversary between them. The input is a script: packets are delivered, dropped,
// repeated, held back, damaged or made up (with the right proof often enough to get past it),
// HELLOs and WELCOMEs are forged, the path becomes narrow or is said to be, links go down, or are
// said to, rails are drained, time passes in odd steps, and the API is used at odd moments. Packets
// may be protected; then the adversary has the job's key, or not. Nothing crashes, the audit
// balances after every step, and work per step is bounded.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "crypto/key_derivation.h"
#include "crypto/packet_cipher.h"
#include "engine/engine.h"
#include "wire/frame.h"
#include "wire/header.h"
#include "wire/hello.h"
#include "wire/protection.h"

namespace {

using namespace pullman;

using Datagram = std::vector<std::byte>;

void require(bool holds) {
  if (!holds) std::abort();
}

// A port that puts what is sent into a list and hands out what is put into another.
class ScriptedPort : public nic::Port {
 public:
  ScriptedPort(std::uint8_t host, std::uint8_t nic, std::uint16_t port) {
    address_ = {
        .kind = 4, .length = 6, .bytes = {std::byte{10}, {}, std::byte{nic}, std::byte{host}}};
    address_ = nic::with_port(address_, port);
    limits_ = {
        .packet_bytes = port == 1 ? 816u : 1472u, .receive_packets = 64, .burst_bytes = 65507};
  }
  std::size_t send(std::span<const nic::Outgoing> batch) override {
    for (const nic::Outgoing& one : batch) {
      Datagram bytes(one.head.begin(), one.head.end());
      bytes.insert(bytes.end(), one.payload.begin(), one.payload.end());
      require(bytes.size() <= limits_.packet_bytes);
      if (sent.size() < 256 && bytes.size() <= carries) sent.push_back(std::move(bytes));
    }
    return batch.size();
  }
  std::size_t receive(std::span<nic::Incoming> batch, std::size_t enough) override {
    std::size_t count = 0;
    for (; count < enough && !arriving.empty(); ++count) {
      lent.push_back(std::move(arriving.front()));
      arriving.pop_front();
      batch[count] = {.bytes = lent.back(), .buffer = 0};
    }
    return count;
  }
  void give_back(std::span<const nic::Incoming> batch) override {
    lent.erase(lent.begin(), lent.begin() + static_cast<std::ptrdiff_t>(batch.size()));
  }
  void resolve(const nic::Address&, std::uint64_t cookie) override { resolving.push_back(cookie); }
  void forget(nic::Destination) override {}
  std::size_t poll_events(std::span<nic::PortEvent> events) override {
    std::size_t count = 0;
    for (; count < events.size() && !resolving.empty(); ++count) {
      events[count] = {
          .kind = nic::PortEvent::Kind::kResolved, .cookie = resolving.front(), .to = 1};
      resolving.pop_front();
    }
    for (; count < events.size() && !links.empty(); ++count) {
      events[count] = {.kind = links.front(), .cookie = 0, .to = nic::kInvalidDestination};
      links.pop_front();
    }
    return count;
  }
  const nic::PortLimits& limits() const override { return limits_; }
  const nic::PortCounters& counters() const override { return counters_; }
  const nic::Address& address() const override { return address_; }
  std::size_t path_bytes(nic::Destination) const override {
    return std::min(told, limits_.packet_bytes);
  }
  int wait_fd() override { return -1; }

  std::size_t told = 65507;                // what the network says of the path, rightly or not
  std::size_t carries = 65507;             // and what it carries
  std::deque<nic::PortEvent::Kind> links;  // what the NIC says of its link
  std::deque<Datagram> sent;
  std::deque<Datagram> arriving;
  std::deque<Datagram> lent;

 private:
  std::deque<std::uint64_t> resolving;
  nic::Address address_;
  nic::PortLimits limits_;
  nic::PortCounters counters_;
};

// How both engines protect their packets, with a key of zeros.
engine::Identity identity_of(std::uint8_t number, wire::Protection protection) {
  engine::Identity identity{KeyedRandom::key_from_seed(number), number};
  if (protection == wire::Protection::kOff) return identity;
  identity.protection = protection;
  identity.job_keys.emplace_back();
  return identity;
}

// An adversary that has the key opens initial packets and seals its own (wire.md 12.5). One that
// has none reads what is in clear, and sends what is not protected, or has a wrong tag.
class Insider {
 public:
  Insider(wire::Protection mode, bool has_key) : mode_(mode), has_key_(has_key) {}

  // Returns the packet of a datagram; nothing if it is not initial, or damaged.
  Datagram open(const Datagram& datagram) const {
    if (!has_key_) return in_clear(datagram);
    const auto packet = wire::packet_in(datagram);
    wire::PacketHeader header;
    if (wire::decode(packet, header, mode_) != wire::Verdict::kAccepted) return {};
    if (!wire::is_initial(header.type)) return {};
    Datagram out(packet.begin(), packet.end());
    const std::byte* const salt = packet.data() + packet.size();
    const std::byte* const count = salt + wire::kSaltBytes;
    const auto cipher =
        cipher_for(std::span<const std::byte, wire::kSaltBytes>(salt, wire::kSaltBytes));
    const auto nonce = wire::nonce_of(false, wire::take_number(count));
    const crypto::ReceivedTag tag(count + 8, wire::kTagBytes);
    const auto body = std::span(out).subspan(wire::kHeaderBytes);
    const bool good = mode_ == wire::Protection::kEncrypt
                          ? cipher.open(nonce, packet.first(wire::kHeaderBytes), body, tag)
                          : cipher.is_authentic(nonce, packet, tag);
    return good ? out : Datagram{};
  }

  Datagram seal(Datagram packet) {
    if (mode_ == wire::Protection::kOff) return packet;
    wire::set_flag(packet.data(), static_cast<std::uint8_t>(mode_));
    if (!has_key_ && ++count_ % 2 == 0) return in_clear(packet);
    const std::size_t length = packet.size();
    packet.insert(packet.end(), salt_.begin(), salt_.end());
    packet.resize(length + wire::kInitialBytes + wire::kTagBytes);
    wire::put_number(&packet[length + wire::kSaltBytes], ++count_);
    if (!has_key_) return packet;  // with a tag of zeros
    const crypto::Tag tag(&packet[length + wire::kInitialBytes], wire::kTagBytes);
    const auto all = std::span(packet).first(length);
    const auto nonce = wire::nonce_of(false, count_);
    const auto cipher = cipher_for(salt_);
    if (mode_ == wire::Protection::kAuthenticate) {
      cipher.authenticate(nonce, all, tag);
    } else {
      const auto body = all.subspan(wire::kHeaderBytes);
      cipher.seal(nonce, all.first(wire::kHeaderBytes), body, body.data(), tag);
    }
    return packet;
  }

 private:
  // What can be read without a key: of an authenticated packet all, without its tag.
  static Datagram in_clear(const Datagram& datagram) {
    wire::PacketHeader header;
    if (wire::decode(datagram, header) == wire::Verdict::kAccepted) return datagram;
    const auto packet = wire::packet_in(datagram);
    Datagram out(packet.begin(), packet.end());
    if (out.size() < wire::kHeaderBytes) return {};
    out[1] &= ~std::byte{wire::kProtectionMask};
    return wire::decode(out, header) == wire::Verdict::kAccepted ? out : Datagram{};
  }

  crypto::PacketCipher cipher_for(std::span<const std::byte, wire::kSaltBytes> salt) const {
    const crypto::Secret<32> job_key;
    const char label[] = "pullman 1";
    crypto::KeyDerivation derivation(std::as_bytes(std::span(label).first(9)), job_key.bytes());
    crypto::CipherKey key;
    derivation.expand(wire::info_of(salt, mode_), key.bytes());
    return crypto::PacketCipher(key);
  }

  const wire::Protection mode_;
  const bool has_key_;
  std::array<std::byte, wire::kSaltBytes> salt_{std::byte{1}};
  std::uint64_t count_ = 0;
};

struct Host {
  Host(std::uint8_t number, std::uint8_t count, const Config& config, Instant now,
       wire::Protection protection) {
    std::vector<engine::NicPorts> nics;
    for (std::uint8_t nic = 0; nic < count; ++nic) {
      auto command_port = std::make_unique<ScriptedPort>(number, nic, 1);
      auto data_port = std::make_unique<ScriptedPort>(number, nic, 2);
      ports.insert(ports.end(), {command_port.get(), data_port.get()});
      nics.push_back({.device = {.name = nic == 0 ? "first" : "second"},
                      .command = std::move(command_port),
                      .data = std::move(data_port)});
    }
    engine = std::make_unique<engine::Engine>(config, std::move(nics),
                                              identity_of(number, protection), now);
  }
  ~Host() { engine->abort(); }

  std::vector<ScriptedPort*> ports;  // command and data port of each NIC
  Datagram called;                   // the last HELLO that was sent to it
  Datagram answered;                 // the last WELCOME
  std::array<Request, 16> sends;
  std::array<Request, 16> receives;
  std::array<std::array<std::byte, 4096>, 16> buffers{};
  std::unique_ptr<engine::Engine> engine;  // ends before the requests it may hold
  PeerId peer = kAnyPeer;
};

class Script {
 public:
  Script(const std::uint8_t* data, std::size_t size) : bytes_(data, size) {}
  bool over() const { return at_ >= bytes_.size(); }
  std::uint8_t byte() { return over() ? std::uint8_t{0} : bytes_[at_++]; }
  std::uint32_t word() {
    return static_cast<std::uint32_t>(byte() << 24 | byte() << 16 | byte() << 8 | byte());
  }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

void check(const Host& host, const Config& config) {
  const engine::Audit audit = host.engine->inspector().audit();
  require(audit.hotel_guests == audit.packets_in_flight);
  require(audit.packets_taken == audit.packets_accounted);
  require(audit.unexpected_bytes <= config.unexpected_bytes);
}

// Changes a packet, keeping the connection id that lets it in.
void damage(Script& script, Datagram& bytes) {
  if (bytes.size() < wire::kHeaderBytes) return;
  const std::size_t at =
      script.byte() % 4 != 0 ? 12 + script.byte() % 20 : 32 + script.word() % (bytes.size() - 31);
  if (at < bytes.size()) bytes[at] = static_cast<std::byte>(script.byte());
  if (script.byte() % 4 == 0) {
    bytes.resize(32 + script.word() % (bytes.size() - 31));
    bytes[2] = static_cast<std::byte>(bytes.size() >> 8);
    bytes[3] = static_cast<std::byte>(bytes.size());
  }
}

void note_meeting(const Insider& insider, Host& to, const Datagram& datagram) {
  const Datagram bytes = insider.open(datagram);
  if (bytes.size() < wire::kHeaderBytes) return;
  const wire::PacketType type = wire::type_of(bytes.front());
  if (type == wire::PacketType::kHello) to.called = bytes;
  if (type == wire::PacketType::kWelcome) to.answered = bytes;
}

// Moves one packet from one host towards the other, in some condition.
void carry(Script& script, const Insider& insider, Host& from, Host& to) {
  const std::size_t port = script.byte() % from.ports.size();
  ScriptedPort& out = *from.ports[port];
  if (port >= to.ports.size()) return;
  ScriptedPort& in = *to.ports[port];
  if (out.sent.empty()) return;
  const std::size_t pick = script.byte() % out.sent.size();
  Datagram bytes = out.sent[pick];
  switch (script.byte() % 8) {
    case 0:
      out.sent.erase(out.sent.begin() + static_cast<long>(pick));
      return;  // lost
    case 1:
      break;  // repeated later
    case 2:
      damage(script, bytes);
      break;
    default:
      out.sent.erase(out.sent.begin() + static_cast<long>(pick));
  }
  note_meeting(insider, to, bytes);
  in.arriving.push_back(std::move(bytes));
}

// Somebody who need not hear anybody: a HELLO of an identity of three, or a WELCOME, made of the
// last that came, with another length, number, epoch, address or riders.
void forge(Script& script, Insider& insider, Host& to) {
  const std::uint8_t how = script.byte();
  const Datagram& original = how & 1 ? to.answered : to.called;
  if (original.empty()) return;
  const auto body = std::span(original).subspan(wire::kHeaderBytes);
  wire::FrameReader reader(body);
  wire::Frame frame;
  if (!reader.next(frame) || frame.type != wire::FrameType::kHello) return;
  auto hello = wire::decode_hello(frame.data);
  if (!hello) return;
  wire::PacketHeader header;
  const auto protection =
      static_cast<wire::Protection>(static_cast<std::uint8_t>(original[1]) & wire::kProtectionMask);
  require(wire::decode(original, header, protection) == wire::Verdict::kAccepted);
  const std::uint8_t identity = script.byte() % 3;
  if (identity != 0) {
    hello->epoch += script.byte() % 3 - 1;
    hello->reply_to = {identity, std::uint32_t{0x1000} + identity};
  }
  if (how & 2) hello->nics[0].data = {.kind = 255, .length = 1, .bytes = {std::byte{1}}};
  if (how & 4) hello->nics[0].command.bytes[3] = std::byte{9};
  if (how & 8) {
    hello->nic_count = 2;
    hello->nics[1] = hello->nics[0];
    hello->nics[0].command.bytes[3] = std::byte{9};
  }
  const std::size_t frames = how & 16 ? frame.data.size() : wire::encoded_bytes(*hello);
  const std::size_t length = std::max(frames + script.byte() % 8, wire::encoded_bytes(*hello));
  const auto early_data = how & 32 ? body.subspan(wire::kFrameHeadBytes + frame.data.size())
                                   : std::span<const std::byte>();
  Datagram bytes(wire::kHeaderBytes + wire::kFrameHeadBytes + length);
  header.number = static_cast<std::uint32_t>(hello->first_number) + script.byte() % 16;
  header.length = static_cast<std::uint16_t>(bytes.size() + early_data.size());
  wire::encode(header, bytes.data());
  wire::encode(*hello, &bytes[wire::kHeaderBytes + wire::put_hello(&bytes[32], length)]);
  bytes.insert(bytes.end(), early_data.begin(), early_data.end());
  to.ports[0]->arriving.push_back(insider.seal(std::move(bytes)));
}

// The network, or a NIC, changes.
void disturb(Script& script, Host& host) {
  const std::size_t nic = script.byte() % (host.ports.size() / 2);
  ScriptedPort& command = *host.ports[2 * nic];
  ScriptedPort& data = *host.ports[2 * nic + 1];
  using Kind = nic::PortEvent::Kind;
  switch (script.byte() % 4) {
    case 0:
      command.links.push_back(Kind::kLinkDown);
      break;
    case 1:
      command.links.push_back(Kind::kLinkUp);
      break;
    default:
      data.told = script.word() % 2048;
      data.carries = 576 + script.word() % 1024;
  }
}

void use(Script& script, Host& host, const Host& other, Instant now) {
  engine::Engine& engine = *host.engine;
  const std::size_t slot = script.byte() % 16;
  const Tag tag = script.byte() % 4;
  switch (script.byte() % 8) {
    case 0:
      host.peer = engine.connect(now, other.ports[0]->address()).peer;
      break;
    case 1:
    case 2:
      if (host.sends[slot].done()) {
        const std::size_t size = script.word() % 4096;
        engine.sending().send(now, host.peer, tag, {host.buffers[slot].data(), size},
                              host.sends[slot]);
      }
      break;
    case 3:
    case 4:
      if (host.receives[slot].done()) {
        engine.matching().receive(
            now, script.byte() % 2 == 0 ? kAnyPeer : host.peer, tag, script.byte() % 4,
            {host.buffers[slot].data(), script.word() % 4096}, host.receives[slot]);
      }
      break;
    case 5:
      engine.matching().cancel(host.receives[slot]);
      break;
    case 6:
      engine.matching().probe(kAnyPeer, tag, 0);
      if (script.byte() % 4 == 0) engine.drain_rail(now, tag % 2 == 0 ? "first" : "second");
      if (script.byte() % 4 == 0) engine.restore_rail(now, tag % 2 == 0 ? "first" : "second");
      engine.inspector().rails(now, host.peer);
      break;
    case 7:
      if (const auto caller = engine.accept()) host.peer = *caller;
      if (script.byte() % 16 == 0) engine.disconnect(now, host.peer);
      break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Script script(data, std::min<std::size_t>(size, 4096));
  Config config;
  config.max_peers = 4;
  config.unexpected_bytes = 64 * 1024;
  config.eager_bytes = 2048;
  config.send_packets = 64;
  config.peer_timeout = std::chrono::milliseconds(200);
  Instant now(std::chrono::seconds(1));
  const std::uint8_t nics = script.byte();
  using wire::Protection;
  constexpr Protection kModes[] = {Protection::kOff, Protection::kAuthenticate,
                                   Protection::kEncrypt, Protection::kOff};
  const Protection mode = kModes[nics >> 2 & 3];
  Insider insider(mode, mode != Protection::kOff && (nics >> 4 & 1) != 0);
  Host a(1, 1 + (nics & 1), config, now, mode);
  Host b(2, 1 + (nics >> 1 & 1), config, now, mode);
  a.peer = a.engine->connect(now, b.ports[0]->address()).peer;
  while (!script.over()) {
    const std::uint8_t step = script.byte();
    Host& here = step & 1 ? a : b;
    Host& there = step & 1 ? b : a;
    switch (step >> 1 & 7) {
      case 0:
        now += std::chrono::microseconds(script.byte());
        break;
      case 1:
        now += std::chrono::milliseconds(script.byte());
        break;
      case 2:
        use(script, here, there, now);
        break;
      case 3:
        for (std::size_t i = 0; i < std::min(here.ports.size(), there.ports.size()); ++i) {
          while (!here.ports[i]->sent.empty()) {
            note_meeting(insider, there, here.ports[i]->sent.front());
            there.ports[i]->arriving.push_back(std::move(here.ports[i]->sent.front()));
            here.ports[i]->sent.pop_front();
          }
        }
        break;
      case 4:
        forge(script, insider, there);
        break;
      case 5:
        disturb(script, here);
        break;
      default:
        carry(script, insider, here, there);
    }
    here.engine->progress(now);
    there.engine->progress(now);
    check(here, config);
    check(there, config);
  }
  return 0;
}
