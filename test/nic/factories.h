// The drivers under contract.
#pragma once

#include <memory>
#include <tuple>

#include "nic/contract.h"
#include "sim/network.h"
#include "standin/controls.h"

namespace pullman::nic::contract {

// Ports of the fabric driver on the first device of a libfabric provider that is on 127.0.0.1.
class FabricFactory : public PortFactory {
 public:
  explicit FabricFactory(const char* provider);

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

struct Udp : FabricFactory {
  Udp() : FabricFactory("udp") {}
};

// The stand-in provider in one of its variants, its controls new.
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

// The simulator's NIC; time passes when it is told to.
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
using Fabrics = std::tuple<Udp, Usnic, Verbs, Efa>;
using Drivers = std::tuple<Udp, Usnic, Verbs, Efa, Simulated>;

}  // namespace pullman::nic::contract
