// A kernel TCP port as a Port: puts the peers' table, the connection table and the receiver
// together.
//
// It is not quite a datagram network: packets of a connection arrive, and in order, as long as the
// connection lasts. Packets that it held when it broke are lost, and so are those that its peer had
// no room for (connection.h). While nothing happens the port costs a system call per receive, and
// none without connections.
//
// Threads: as Port.
#pragma once

#include <optional>
#include <vector>

#include "nic/error_report.h"
#include "nic/own_interface.h"
#include "nic/peers.h"
#include "nic/port.h"
#include "nic/tcp/connection_table.h"
#include "nic/tcp/gather.h"
#include "nic/tcp/receiver.h"

namespace pullman::nic::tcp {

class TcpPort final : public Port {
 public:
  // Throws NicError.
  TcpPort(const Device& device, const PortOptions& options);

  std::size_t send(std::span<const Outgoing> batch) override;
  std::size_t receive(std::span<Incoming> batch, std::size_t enough) override;
  void give_back(std::span<const Incoming> batch) override;
  void resolve(const Address& address, std::uint64_t cookie) override;
  void forget(Destination to) override;
  std::size_t poll_events(std::span<PortEvent> events) override;
  const PortLimits& limits() const override { return limits_; }
  const PortCounters& counters() const override { return counters_; }
  const Address& address() const override { return connection_table_.own(); }
  Reach reach(const Address& to) const override { return interface_.reach(to); }
  bool is_own(const Address& to) const override { return interface_.is_own(to); }
  int wait_fd() override;

  const ConnectionTable& connection_table() const { return connection_table_; }

 private:
  // All connections are polled once in this many receives: without connections or with one, which
  // is read directly; and with more, of which the busy one is read directly.
  static constexpr std::uint32_t kRestAlone = 16;
  static constexpr std::uint32_t kRestAmongMany = 2;
  // Most buffers read by one receive() that held nothing to hand out.
  static constexpr std::size_t kMaxReads = 16;

  TcpPort(Socket listener, const Device& device, const PortOptions& options);
  Socket prepare(Socket listener, const PortOptions& options);
  std::size_t send_some(std::span<const Outgoing> packets);
  Connection* next_to_read(bool first);
  std::size_t hand_out(std::span<Incoming> batch);
  void greet(Connection& connection);

  Buffers buffers_;
  PortLimits limits_;
  PortCounters counters_;
  ErrorReport report_;
  Receiver receiver_;
  ConnectionTable connection_table_;
  Peers peers_;
  std::vector<Way*> ways_;  // by destination
  Gather gather_;
  std::uint64_t busy_ = 0;    // name of the connection that last brought something
  std::uint32_t looked_ = 0;  // receives since all were polled
  OwnInterface interface_;
  std::optional<WaitSet> wait_set_;  // made by the first wait_fd()
};

}  // namespace pullman::nic::tcp
