// One kernel UDP socket as a Port: puts the sender, the receiver and the peers' table together.
//
// A peer that many consecutive sends are for gets a second socket on the same port, connected to
// it: then the kernel looks up no route, neither for packets sent nor for packets received, which
// saves 0.15 to 0.2 us of the 0.7 that a small packet takes to send. Peers do not notice: packets
// keep their order, because a socket is connected when it is empty, and the packets that came
// before by the other socket are read first. (Reordered packets count as lost where a round trip
// takes less than the reading.)
//
// The socket is bound to its device, or all NICs of a host on one subnet would send by the first of
// them. Another socket has only the address: it receives packets to our address that arrive by
// another NIC, because of ARP or routes, so that the host does not report the port unreachable; and
// it sends where only other NICs lead. On the loopback, and where the kernel refuses to bind to the
// device, there is only the latter.
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
  // A socket and its received packets.
  struct Line {
    Line(Socket opened, UdpPort& port, std::uint64_t names);
    bool quiet() const { return empty_receives == kQuiet; }

    Socket socket;
    Receiver receiver;
    std::uint32_t empty_receives = 0;  // consecutive receives without a packet, up to kQuiet
    std::uint64_t heard = 0;           // number of the port's receive that brought its last packet
    std::uint64_t due = 0;             // number of the port's receive that polls it next
  };
  static constexpr std::uint32_t kQuiet = 64;
  // Polling a line costs a system call. A quiet line is polled once in kRest receives; beside one
  // that is not quiet, after a fraction of its silence, so that its packets have waited little
  // compared with that.
  static constexpr std::uint64_t kRest = 8;
  static constexpr std::uint64_t kRestOfSilence = 8;
  static constexpr std::uint64_t kLongestRest = 128;
  static constexpr std::uint64_t kDirectNames = std::uint64_t{1} << 32;
  static constexpr std::uint64_t kByOthersNames = std::uint64_t{2} << 32;

  // Steps of the move to another connected peer. A peer that sends faster than we read would keep
  // us in one for ever: so when more has come than a socket holds, the move goes on, and packets
  // may be reordered.
  enum class Move : std::uint8_t {
    kNone,
    kEmptiesDirect,  // then direct_ is connected
    kEmptiesMain,    // which holds what the connected peer sent before
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
  mutable PortCounters counters_;  // mutable, because the sockets' own counters are read on demand
  ErrorReport report_;
  bool failed_ = false;  // kFailed was reported
  Address address_;
  Peers peers_;
  std::size_t charged_;              // by the kernel, for a full packet
  std::optional<WaitSet> wait_set_;  // made by the first wait_fd()
  bool watched_ = false;             // whether the sockets are in `wait_set_`
  Line main_;
  ReceiveRoom room_;
  Sender sender_;
  ConnectedPeer connected_peer_;
  std::unique_ptr<Line> direct_;     // connected to the connected peer; null until there is one
  std::unique_ptr<Line> by_others_;  // bound to no device; null where main_ is not, either
  // In the order in which they are polled: direct_ first, by_others_ last.
  std::array<Line*, 3> line_{};
  std::size_t lines_ = 0;
  Move move_ = Move::kNone;
  std::size_t move_left_ = 0;  // packets that may still come in this step
  bool alone_ = false;         // the system allows no second socket
  std::uint64_t receives_ = 0;
  std::uint64_t look_due_ = 0;  // the receive that polls a line that is not always polled
  OwnInterface interface_;
};

}  // namespace pullman::nic::udp
