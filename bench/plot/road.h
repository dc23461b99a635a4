// The road of a lab: what lies between N senders and their receivers, in virtual time.
//
// Each host has an access line, all of them share one bottleneck each way: a rate and a queue of
// bytes that drops what does not fit. Then a propagation delay, random loss and reordering, and at
// the end the receiver's socket buffer. Knows datagrams and ports; not engines, messages or what
// they are for.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "base/random.h"
#include "base/time.h"
#include "nic/port.h"

namespace pullman::lab {

enum class Channel : std::uint8_t { kCommand = 0, kData = 1 };

struct RoadPlan {
  std::uint64_t bits_per_second = 10'000'000'000;
  std::uint64_t access_bits_per_second = 10'000'000'000;  // of each host
  std::size_t queue_bytes = 1'000'000;                    // of the bottleneck, each way
  Duration delay = std::chrono::microseconds(5);          // one way
  std::uint32_t loss_millionths = 0;                      // of any packet, either way
  std::uint32_t reorder_millionths = 0;                   // packets that take another way
  Duration reorder_by{};                                  // and are up to this much later
  std::size_t send_packets = 256;                         // a port's queue before its access line
  std::size_t socket_packets = 512;                       // a port's receive buffer
  // What a host's processor takes for a packet in or out: as over kernel UDP with segmentation
  // offload. So much later leaves each packet of a turn.
  Duration packet_cost = std::chrono::nanoseconds(200);
  std::size_t packets_per_turn = nic::kBatchPackets;  // see nic::PortLimits
};

struct Datagram {
  std::unique_ptr<std::byte[]> bytes;
  std::uint32_t length = 0;
  std::uint32_t to = 0;  // a port's place: 2 x host + channel
  bool forth = true;     // from senders to receivers; else back
  bool past_bottleneck = false;
};

class RoadPort;

class Road {
 public:
  // Hosts below `senders` are on the one side of the bottleneck, the others on the other.
  Road(const RoadPlan& plan, std::size_t hosts, std::size_t senders, std::uint64_t seed);
  ~Road();

  std::unique_ptr<nic::Port> open(std::size_t host, Channel channel);
  bool has_work(std::size_t host) const;

  Instant next_event() const { return heap_.empty() ? kNever : heap_.front().at; }
  // Moves time on; `arrived(host)` for each datagram that reached a socket.
  void advance(Instant now, const std::function<void(std::size_t)>& arrived);
  Instant now() const { return now_; }

  // Bytes waiting at the bottleneck, on the senders' way.
  std::size_t queued() const;
  std::uint64_t queue_drops() const { return queue_drops_; }
  std::uint64_t socket_drops() const { return socket_drops_; }
  std::uint64_t carried() const { return carried_; }  // past the bottleneck, on the senders' way

  // What a host does until it ends its turn takes time, beginning now.
  void begin_turn(std::size_t host) { spent_[host] = {}; }
  void spend(std::size_t host, std::size_t packets) {
    spent_[host] += static_cast<Duration::rep>(packets) * plan_.packet_cost;
  }
  Duration spent(std::size_t host) const { return spent_[host]; }

  // For ports. False: the access line's queue is full.
  bool send(std::uint32_t from, const nic::Outgoing& packet);

 private:
  struct Line {
    Instant busy_until{};
  };
  struct Event {
    Instant at;
    std::uint64_t serial = 0;  // breaks ties in the order of sending
    Datagram datagram;
    bool operator>(const Event& other) const {
      return at != other.at ? at > other.at : serial > other.serial;
    }
  };

  Duration transfer(std::size_t bytes, std::uint64_t bits_per_second) const;
  void push(Instant at, Datagram datagram);
  void enter_bottleneck(Datagram datagram);

  RoadPlan plan_;
  std::size_t senders_;
  Random random_;
  Instant now_{};
  std::vector<Line> access_;        // per host
  std::vector<Duration> spent_;     // per host: in this turn
  std::array<Line, 2> bottleneck_;  // forth and back
  std::vector<RoadPort*> ports_;    // by place
  std::vector<Event> heap_;
  std::uint64_t serial_ = 0;
  std::uint64_t queue_drops_ = 0;
  std::uint64_t socket_drops_ = 0;
  std::uint64_t carried_ = 0;
};

}  // namespace pullman::lab
