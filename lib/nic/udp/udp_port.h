// One kernel UDP socket as a Port: puts the sender, the receiver and the peers' table together.
//
// A peer that many sends in a row are for gets a second socket on the same port, connected to it:
// the kernel then looks up no route, neither for what leaves nor for what arrives, which saves 0.15
// to 0.2 us of the 0.7 a small packet takes to leave. Nobody else notices: what a peer sent keeps
// its order, as a socket is connected when it is empty, and what had come before by the other is
// read first. (Out of order it passes for lost, where a round trip takes less than the reading.)
//
// The socket is bound to its device, or a host's NICs on one subnet would all send by the first of
// them. Another socket has the address alone: it receives what reaches our address by another NIC,
// as ARP and routes may have it, so that the host does not answer that nobody listens; and it sends
// where only other NICs lead. Where the kernel refuses to bind to the device, and on the loopback,
// there is only that.
//
// Threads: as Port.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "nic/error_report.h"
#include "nic/own_interface.h"
#include "nic/peers.h"
#include "nic/port.h"
#include "nic/udp/connected_peer.h"
#include "nic/udp/receive_room.h"
#include "nic/udp/receiver.h"
#include "nic/udp/sender.h"
#include "nic/udp/socket.h"

namespace pullman::nic::udp {

class UdpPort final : public Port {
 public:
  // Throws NicError.
  UdpPort(const Device& device, const PortOptions& options);

  std::size_t send(std::span<const Outgoing> batch) override {
    if (!batch.empty() && connected_peer_.note(batch.back().to)) connect_to_peer(batch.back().to);
    const std::size_t taken = sender_.send(batch, counters_);
    limits_.burst_bytes = sender_.burst_bytes();
    return taken;
  }
  std::size_t receive(std::span<Incoming> batch, std::size_t enough) override {
    return lines_ == 1 ? main_.receiver.receive(batch, enough, counters_)
                       : receive_by_turns(batch, enough);
  }
  bool by_another_nic(const Incoming& packet) const override {
    return packet.buffer >= kByOthersNames;
  }
  void give_back(std::span<const Incoming> batch) override {
    if (batch.size() == 1) return give_back(batch.front().buffer, 1);
    give_back_several(batch);
  }
  void resolve(const Address& address, std::uint64_t cookie) override;
  void forget(Destination to) override;
  std::size_t poll_events(std::span<PortEvent> events) override {
    report_.look(counters_.errors);
    if (!failed_ && broken()) [[unlikely]]
      return report_failure(events);
    if (sender_.misses_device()) [[unlikely]]
      follow_device();
    const std::size_t count = peers_.take_events(events);
    return count + interface_.poll(events.subspan(count));
  }
  const PortLimits& limits() const override { return limits_; }
  const PortCounters& counters() const override;
  const Address& address() const override { return address_; }
  std::size_t path_bytes(Destination to) const override;
  Reach reach(const Address& to) const override { return interface_.reach(to); }
  bool is_own(const Address& to) const override { return interface_.is_own(to); }
  int wait_fd() override;
  void unwatch() override;

  const ReceiveRoom& receive_room() const { return room_; }
  int descriptor() const { return main_.socket.fd(); }

 private:
  // A socket and what comes from it.
  struct Line {
    Line(Socket opened, UdpPort& port, std::uint64_t names);
    bool quiet() const { return fruitless == kQuiet; }

    Socket socket;
    Receiver receiver;
    std::uint32_t fruitless = 0;  // receives in a row without a packet, up to kQuiet
    std::uint64_t heard = 0;      // the port's receive that brought its last packet
    std::uint64_t due = 0;        // the port's receive that is to ask it
  };
  static constexpr std::uint32_t kQuiet = 64;
  // To ask a line costs a system call. A quiet one is asked once in so many receives; beside one
  // that is not, once in this part of its silence, so that what comes has not waited for long
  // beside that.
  static constexpr std::uint64_t kRest = 8;
  static constexpr std::uint64_t kRestOfSilence = 8;
  static constexpr std::uint64_t kLongestRest = 128;
  static constexpr std::uint64_t kDirectNames = std::uint64_t{1} << 32;
  static constexpr std::uint64_t kByOthersNames = std::uint64_t{2} << 32;

  // On the way to another connected peer. Who sends faster than we read would keep us on it for
  // ever: when more has come than a socket holds, it goes on, and a packet may overtake another.
  enum class Move : std::uint8_t {
    kNone,
    kEmptiesDirect,  // then direct_ is connected
    kEmptiesMain,    // which has what the connected peer sent before
  };
  static constexpr std::size_t kLongestMove = 1 << 14;  // packets of each step

  UdpPort(Sockets sockets, const Device& device, const PortOptions& options);
  ReceiveRoom prepare(const Socket& socket);
  Socket open_another(Tie tie) const;
  void receive_by_others(Socket socket);
  void follow_device();
  void connect_to_peer(Destination to);
  bool open_direct();
  void connect_direct();
  void give_back(std::uint64_t buffer, std::uint32_t packets) {
    line_of(buffer).receiver.give_back(buffer, packets);
  }
  Line& line_of(std::uint64_t buffer) {
    if (buffer < kDirectNames) return main_;
    return buffer < kByOthersNames ? *direct_ : *by_others_;
  }
  void give_back_several(std::span<const Incoming> batch);
  std::size_t receive_from(Line& line, std::span<Incoming> batch, std::size_t enough);
  std::size_t receive_by_turns(std::span<Incoming> batch, std::size_t enough);
  std::size_t look_everywhere(std::span<Incoming> batch, std::size_t enough);
  std::uint64_t rest(const Line& line) const;
  bool all_quiet() const;
  std::size_t receive_in_order(std::span<Incoming> batch, std::size_t enough);
  void begin(Move move);
  bool done_with(Line& line, std::size_t got);
  bool watch();
  void unwatch_all();
  std::size_t report_failure(std::span<PortEvent> events);
  bool broken() const {
    return sender_.broken() || main_.receiver.broken() ||
           (direct_ != nullptr && direct_->receiver.broken()) ||
           (by_others_ != nullptr && by_others_->receiver.broken());
  }

  PortOptions options_;
  std::string device_;  // that the socket is bound to
  Offloads offloads_;   // of the socket
  PortLimits limits_;
  mutable PortCounters counters_;  // the sockets' own are read when asked for
  ErrorReport report_;
  bool failed_ = false;  // kFailed was reported
  Address address_;
  Peers peers_;
  std::size_t charged_;              // by the kernel, for a full packet
  std::optional<WaitSet> wait_set_;  // once it was asked for
  bool watched_ = false;             // the sockets are in it
  Line main_;
  ReceiveRoom room_;
  Sender sender_;
  ConnectedPeer connected_peer_;
  std::unique_ptr<Line> direct_;     // connected to that peer, once there was one
  std::unique_ptr<Line> by_others_;  // bound to no device; null where main_ is not, either
  // In the order in which they are asked: direct_ first, by_others_ last.
  std::array<Line*, 3> line_{};
  std::size_t lines_ = 0;
  Move move_ = Move::kNone;
  std::size_t move_left_ = 0;  // packets that may still come before it goes on
  bool alone_ = false;         // the system allows no second socket
  std::uint64_t receives_ = 0;
  std::uint64_t look_due_ = 0;  // the receive that is to ask one that is not asked each time
  OwnInterface interface_;
};

}  // namespace pullman::nic::udp
