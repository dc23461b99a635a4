// Somebody who sees all that two hosts send each other, and can send what it likes to both: it
// stands at the ports of a bridge.
//
//   attacker PORT0 PORT1 --own 10.77.0.66 --seconds 5
//
// It sends as fast as it can: copies of datagrams it has seen, in any order; the same back to their
// senders, with a bit changed, cut, from an address of its own; and bytes of its own making. Says
// as JSON how much of each, and how many datagrams came to its own address.
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Frame = std::vector<unsigned char>;

constexpr std::size_t kIpAt = sizeof(ether_header);
constexpr std::size_t kUdpAt = kIpAt + sizeof(iphdr);
constexpr std::size_t kPayloadAt = kUdpAt + sizeof(udphdr);
constexpr std::size_t kRemembered = 8192;

enum Attack : unsigned { kReplay, kReflect, kFlip, kCut, kFromOwn, kMadeUp, kAttacks };
constexpr std::array<const char*, kAttacks> kNames = {"replayed", "reflected", "flipped",
                                                      "cut",      "from_own",  "made_up"};

template <typename Header>
Header read(const Frame& frame, std::size_t at) {
  Header header;
  std::memcpy(&header, frame.data() + at, sizeof header);
  return header;
}
template <typename Header>
void write(Frame& frame, std::size_t at, const Header& header) {
  std::memcpy(frame.data() + at, &header, sizeof header);
}

// A datagram over IPv4 without options.
bool is_datagram(const Frame& frame) {
  if (frame.size() <= kPayloadAt) return false;
  const auto ethernet = read<ether_header>(frame, 0);
  const auto ip = read<iphdr>(frame, kIpAt);
  return ntohs(ethernet.ether_type) == ETHERTYPE_IP && ip.ihl == 5 && ip.protocol == IPPROTO_UDP;
}

// HELLO, WELCOME or CHECK (docs/wire.md 2.2).
bool is_initial(const Frame& frame) {
  const unsigned type = frame[kPayloadAt] & 15U;
  return type == 3 || type == 4 || type == 6;
}

// Makes lengths and checksums right for what the frame holds now. A datagram needs none (RFC 768).
void settle(Frame& frame) {
  auto ip = read<iphdr>(frame, kIpAt);
  auto udp = read<udphdr>(frame, kUdpAt);
  ip.tot_len = htons(static_cast<std::uint16_t>(frame.size() - kIpAt));
  udp.len = htons(static_cast<std::uint16_t>(frame.size() - kUdpAt));
  udp.check = 0;
  ip.check = 0;
  std::array<std::uint16_t, sizeof ip / 2> words;
  std::memcpy(words.data(), &ip, sizeof ip);
  std::uint32_t sum = 0;
  for (const std::uint16_t word : words) sum += word;
  while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
  ip.check = static_cast<std::uint16_t>(~sum);
  write(frame, kIpAt, ip);
  write(frame, kUdpAt, udp);
}

// A port of the bridge: what the host behind it sends comes in here.
class BridgePort {
 public:
  explicit BridgePort(const std::string& name)
      : socket_(socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(ETH_P_ALL))) {
    sockaddr_ll place{};
    place.sll_family = AF_PACKET;
    place.sll_protocol = htons(ETH_P_ALL);
    place.sll_ifindex = static_cast<int>(if_nametoindex(name.c_str()));
    if (socket_ < 0 || place.sll_ifindex == 0 ||
        bind(socket_, reinterpret_cast<sockaddr*>(&place), sizeof place) != 0) {
      throw std::runtime_error("cannot listen at " + name + ": " + std::strerror(errno));
    }
  }
  ~BridgePort() { close(socket_); }
  BridgePort(const BridgePort&) = delete;
  BridgePort& operator=(const BridgePort&) = delete;

  // Returns false if nothing has come from the host.
  bool receive(Frame& frame) {
    frame.resize(2048);
    sockaddr_ll from{};
    socklen_t length = sizeof from;
    const ssize_t got = recvfrom(socket_, frame.data(), frame.size(), MSG_TRUNC,
                                 reinterpret_cast<sockaddr*>(&from), &length);
    if (got < 0) return false;
    frame.resize(std::min(static_cast<std::size_t>(got), frame.size()));
    if (from.sll_pkttype == PACKET_OUTGOING || static_cast<std::size_t>(got) > frame.size()) {
      frame.clear();
    }
    return true;
  }
  // To the host. Returns false if there is no room.
  bool send_to_host(const Frame& frame) {
    return send(socket_, frame.data(), frame.size(), 0) == static_cast<ssize_t>(frame.size());
  }

 private:
  int socket_;
};

struct Seen {
  Frame frame;
  unsigned from = 0;  // the port
};

class Attacker {
 public:
  Attacker(const std::string& first, const std::string& second, const std::string& own)
      : ports_{BridgePort(first), BridgePort(second)} {
    if (inet_pton(AF_INET, own.c_str(), &own_) != 1) throw std::runtime_error("no address: " + own);
  }

  void run(std::chrono::seconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
      listen();
      for (int i = 0; i < 64 && !seen_.empty(); ++i) attack();
    }
  }

  nlohmann::json report() const {
    nlohmann::json out{{"seen", seen_count_}, {"heard", heard_}};
    for (unsigned i = 0; i < kAttacks; ++i) out[kNames[i]] = sent_[i];
    return out;
  }

 private:
  void listen() {
    for (unsigned port : {0U, 1U}) {
      for (int i = 0; i < 256 && ports_[port].receive(frame_); ++i) {
        if (!is_datagram(frame_)) continue;
        if (read<iphdr>(frame_, kIpAt).daddr == own_) {
          ++heard_;
          continue;
        }
        Seen seen{frame_, port};
        if (is_initial(frame_) && initials_.size() < kRemembered) initials_.push_back(seen);
        if (seen_.size() < kRemembered) {
          seen_.push_back(std::move(seen));
        } else {
          seen_[seen_count_ % kRemembered] = std::move(seen);
        }
        ++seen_count_;
      }
    }
  }

  void attack() {
    const bool initial = !initials_.empty() && random_() % 8 == 0;
    const Seen& seen =
        initial ? initials_[random_() % initials_.size()] : seen_[random_() % seen_.size()];
    frame_ = seen.frame;
    unsigned to = 1 - seen.from;
    const auto what = static_cast<Attack>(random_() % kAttacks);
    switch (what) {
      case kReplay:
        break;
      case kReflect:
        reflect();
        to = seen.from;
        break;
      case kFlip:
        frame_[kPayloadAt + random_() % (frame_.size() - kPayloadAt)] ^=
            static_cast<unsigned char>(1U << random_() % 8);
        break;
      case kCut:
        frame_.resize(kPayloadAt + random_() % (frame_.size() - kPayloadAt));
        break;
      case kFromOwn:
        come_from_own();
        break;
      case kMadeUp:
        make_up();
        break;
      case kAttacks:
        return;
    }
    settle(frame_);
    sent_[what] += ports_[to].send_to_host(frame_) ? 1 : 0;
  }

  void reflect() {
    auto ethernet = read<ether_header>(frame_, 0);
    std::swap(ethernet.ether_shost, ethernet.ether_dhost);
    auto ip = read<iphdr>(frame_, kIpAt);
    std::swap(ip.saddr, ip.daddr);
    auto udp = read<udphdr>(frame_, kUdpAt);
    std::swap(udp.source, udp.dest);
    write(frame_, 0, ethernet);
    write(frame_, kIpAt, ip);
    write(frame_, kUdpAt, udp);
  }
  // Also where the datagram itself names its sender; a HELLO is one of another process then.
  void come_from_own() {
    auto ip = read<iphdr>(frame_, kIpAt);
    std::array<unsigned char, 4> was, is;
    std::memcpy(was.data(), &ip.saddr, was.size());
    std::memcpy(is.data(), &own_, is.size());
    ip.saddr = own_;
    write(frame_, kIpAt, ip);
    auto at = frame_.begin() + kPayloadAt;
    while ((at = std::search(at, frame_.end(), was.begin(), was.end())) != frame_.end()) {
      at = std::copy(is.begin(), is.end(), at);
    }
    constexpr std::size_t kEpochAt = kPayloadAt + 36;
    if (is_initial(frame_) && frame_.size() > kEpochAt) {
      frame_[kEpochAt] = static_cast<unsigned char>(random_());
    }
  }
  // The first bytes often look right, so that more than the first check is met.
  void make_up() {
    const std::size_t kept =
        random_() % 2 == 0 ? std::min<std::size_t>(frame_.size() - kPayloadAt, 18) : 0;
    frame_.resize(kPayloadAt + std::max<std::size_t>(kept, 1 + random_() % 1400));
    for (std::size_t at = kPayloadAt + kept; at < frame_.size(); ++at) {
      frame_[at] = static_cast<unsigned char>(random_());
    }
  }

  std::array<BridgePort, 2> ports_;
  in_addr_t own_ = 0;
  std::minstd_rand random_{1};
  std::vector<Seen> seen_;      // the last ones
  std::vector<Seen> initials_;  // those that begin connections
  Frame frame_;
  std::uint64_t seen_count_ = 0;
  std::uint64_t heard_ = 0;
  std::array<std::uint64_t, kAttacks> sent_{};
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Sees all that two hosts send, and sends what it likes to both.");
  std::string first, second, own;
  unsigned seconds = 5;
  app.add_option("PORT0", first, "the bridge's port of the first host")->required();
  app.add_option("PORT1", second, "the other's")->required();
  app.add_option("--own", own, "an IPv4 address that both would answer to")->required();
  app.add_option("--seconds", seconds);
  CLI11_PARSE(app, argc, argv);
  try {
    Attacker attacker(first, second, own);
    attacker.run(std::chrono::seconds(seconds));
    std::puts(attacker.report().dump().c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "attacker: %s\n", error.what());
    return 1;
  }
  return 0;
}
