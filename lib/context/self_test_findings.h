// What the self-test of a context judges: what the host grants this process, what its NICs are, and
// what a check has found of a rail. Each finding is a line that says what is so, what that means,
// and what a person can do about it; what nobody can change, or need change, has no line. Knows no
// context, and no time. Cold.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/nics/nic_ports.h"
#include "nic/port.h"
#include "pullman/config.h"
#include "pullman/rails.h"

namespace pullman {

// What the host grants this process.
struct HostFacts {
  static constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};
  std::uint64_t descriptors_left = kUnlimited;  // that it may still open
  std::uint64_t lockable_bytes = kUnlimited;    // RLIMIT_MEMLOCK
  std::uint64_t shared_bytes = kUnlimited;      // free in /dev/shm
  bool polls_when_waiting = true;               // net.core.busy_poll is not 0
};
HostFacts read_host_facts();

// What of a NIC that is used matters here.
struct NicFacts {
  std::string name;
  std::string driver;
  std::string provider;
  bool loopback = false;
  bool stream = false;
  bool hardware = false;   // its offloads are a device's, and not another interface's
  std::string offloads{};  // as nic::Device has them
  nic::PortLimits limits;  // of its data channel
};
// Returns one of each NIC that is open; further addresses of a NIC are no NICs.
std::vector<NicFacts> read_nic_facts(const std::vector<engine::NicPorts>& nics);

// Returns the lines that can be said before any packet has left.
std::vector<std::string> judge_host(const Config& config, const std::vector<NicFacts>& nics,
                                    const HostFacts& host);
// Returns the line of a rail; empty if it is fine.
std::string judge_rail(const std::string& peer, const RailCheck& rail);

}  // namespace pullman
