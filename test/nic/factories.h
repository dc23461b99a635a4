// The drivers that the contract is tested on.
#pragma once

#include <memory>
#include <tuple>

#include "nic/contract.h"
#include "sim/network.h"
#include "standin/controls.h"

namespace pullman::nic::contract {

// Ports of a driver on its first device with a loopback address.
class Loopback : public PortFactory {
 public:
  Loopback(std::unique_ptr<Driver> driver, const char* host);

  std::unique_ptr<Port> open(const PortOptions& options) override;
  Address unresolvable() override;
  void pass_time() override;
  std::string complaint() override { return ""; }
  bool queue_fills() const override { return false; }

  const Device& device() const { return device_; }

 private:
  std::unique_ptr<Driver> driver_;
  Device device_;
};

// Ports of the fabric driver on a libfabric provider.
struct FabricFactory : Loopback {
  explicit FabricFactory(const char* provider);
};

struct Udp : FabricFactory {
  Udp() : FabricFactory("udp") {}
};

// Ports on kernel UDP sockets, with the default options and with others.
struct Kernel : Loopback {
  explicit Kernel(const char* host = "127.0.0.1");
};
struct KernelIpv6 : Kernel {
  KernelIpv6() : Kernel("::1") {}
};
struct KernelPlain : Kernel {
  std::unique_ptr<Port> open(const PortOptions& options) override;
};
// With a socket that holds hardly any packets.
struct KernelTiny : Kernel {
  std::unique_ptr<Port> open(const PortOptions& options) override;
};

// Ports of the driver on kernel TCP.
struct Tcp : Loopback {
  explicit Tcp(const char* host = "127.0.0.1");
};
struct TcpIpv6 : Tcp {
  TcpIpv6() : Tcp("::1") {}
};
// With sockets that hold hardly any bytes.
struct TcpTiny : Tcp {
  std::unique_ptr<Port> open(const PortOptions& options) override;
};

// The stand-in provider in one of its variants, with its controls reset.
class Standin : public FabricFactory {
 public:
  explicit Standin(const char* variant);

  Address unresolvable() override;
  std::string complaint() override;
  bool queue_fills() const override { return true; }

  standin::Controls& controls;
  standin::Orders& orders() { return controls.orders; }
  const standin::Tallies& tallies() const { return controls.tallies; }
};

struct Usnic : Standin {
  Usnic() : Standin("usnic") {}
};
struct Verbs : Standin {
  Verbs() : Standin("verbs") {}
};
struct Efa : Standin {
  Efa() : Standin("efa") {}
};

// The simulator's NIC, whose time passes only in pass_time().
class Simulated : public PortFactory {
 public:
  std::unique_ptr<Port> open(const PortOptions& options) override;
  Address unresolvable() override;
  void pass_time() override;
  std::string complaint() override { return findings_.first(); }
  bool queue_fills() const override { return true; }

 private:
  static constexpr std::size_t kHosts = 4;
  sim::Findings findings_;
  sim::Network network_{kHosts, 1, findings_};
  std::uint8_t next_host_ = 0;
};

using Standins = std::tuple<Usnic, Verbs, Efa>;
using Kernels = std::tuple<Kernel, KernelIpv6, KernelPlain>;
using Devices = std::tuple<Udp, Usnic, Verbs, Efa, Kernel, KernelIpv6, Tcp, TcpIpv6>;
// The drivers that hold a few dozen packets, and all drivers.
using Roomy =
    std::tuple<Udp, Usnic, Verbs, Efa, Simulated, Kernel, KernelIpv6, KernelPlain, Tcp, TcpIpv6>;
using Drivers = std::tuple<Udp, Usnic, Verbs, Efa, Simulated, Kernel, KernelIpv6, KernelPlain,
                           KernelTiny, Tcp, TcpIpv6, TcpTiny>;

}  // namespace pullman::nic::contract
