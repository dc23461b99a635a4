#include "context/self_test_findings.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "nic/link_facts.h"

namespace pullman {
namespace {

constexpr std::uint64_t kFewDescriptors = 64;
constexpr std::uint64_t kLittleShared = 16 << 20;
constexpr std::uint64_t kLittleLocked = 64 << 20;

std::uint64_t limit_of(decltype(RLIMIT_NOFILE) resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return HostFacts::kUnlimited;
  }
  return limit.rlim_cur;
}

std::uint64_t descriptors_left() {
  const std::uint64_t limit = limit_of(RLIMIT_NOFILE);
  std::error_code error;
  std::filesystem::directory_iterator open("/proc/self/fd", error);
  if (error || limit == HostFacts::kUnlimited) return HostFacts::kUnlimited;
  std::uint64_t used = 0;
  for (; open != std::filesystem::directory_iterator() && !error; open.increment(error)) ++used;
  return limit - std::min(limit, used);
}

bool uses_sockets(const NicFacts& nic) {
  return nic.driver == "udp" || nic.driver == "tcp";
}

// A provider that moves packets by the kernel's sockets registers no memory with a device.
bool locks_memory(const NicFacts& nic) {
  return nic.driver == "fabric" && !nic.provider.starts_with("udp") &&
         !nic.provider.starts_with("tcp") && !nic.provider.starts_with("sockets");
}

void judge_buffer(const NicFacts& nic, const nic::BufferGrant& buffer, const char* what,
                  const char* meaning, const char* sysctl, std::vector<std::string>& out) {
  if (buffer.granted >= buffer.wanted) return;
  out.push_back(fmt::format(
      "{}: {} buffers of {} bytes instead of {}: {}; as root: sysctl -w net.core.{}={}", nic.name,
      what, buffer.granted, buffer.wanted, meaning, sysctl, buffer.wanted / 2));
}

void judge_sockets(const Config& config, const NicFacts& nic, std::vector<std::string>& out) {
  judge_buffer(nic, nic.limits.receive_buffer, "receive",
               "less can be in flight, and more is lost while the program does not poll",
               "rmem_max", out);
  judge_buffer(nic, nic.limits.send_buffer, "send",
               "the kernel takes fewer packets at once, so sending takes more turns", "wmem_max",
               out);
  if (nic.driver == "udp" && config.offloads && nic.limits.burst_bytes == 0) {
    out.push_back(fmt::format(
        "{}: the kernel sends packets one by one (no UDP_SEGMENT): a stream takes several times "
        "the processor time; use Linux 4.18 or later, and a sandbox that allows the option",
        nic.name));
  }
}

// A virtual interface, as a container has one, passes a burst on whole, and what is switched off on
// it is switched off by default (gro on veth): there is nothing to be done about it.
void judge_offloads(const Config& config, const NicFacts& nic, std::vector<std::string>& out) {
  if (!config.offloads || !nic.hardware) return;
  for (const char* feature : {"gso", "gro"}) {
    if (nic.offloads.find(fmt::format("({} off)", feature)) == std::string::npos) continue;
    out.push_back(fmt::format(
        "{}: {} is off: the kernel takes bursts apart and moves packets one by one; as root: "
        "ethtool -K {} {} on",
        nic.name, feature, nic.name, feature));
  }
}

void judge_packets(const std::vector<NicFacts>& nics, std::vector<std::string>& out) {
  const auto counts = [](const NicFacts& nic) { return !nic.loopback && !nic.stream; };
  const NicFacts* most = nullptr;
  for (const NicFacts& nic : nics) {
    if (!counts(nic)) continue;
    if (most == nullptr || nic.limits.packet_bytes > most->limits.packet_bytes) most = &nic;
  }
  for (const NicFacts& nic : nics) {
    if (!counts(nic) || nic.limits.packet_bytes >= most->limits.packet_bytes) continue;
    // IPv6 has longer headers.
    if (most->limits.packet_bytes - nic.limits.packet_bytes <= 64) continue;
    out.push_back(fmt::format(
        "{}: packets of {} bytes at most, {} carries {}: small messages are cut for the smaller; "
        "give both the same MTU, at both ends and on the switches: ip link set {} mtu ...",
        nic.name, nic.limits.packet_bytes, most->name, most->limits.packet_bytes, nic.name));
  }
}

void judge_limits(const Config& config, const std::vector<NicFacts>& nics, const HostFacts& host,
                  std::vector<std::string>& out) {
  if (host.descriptors_left < kFewDescriptors) {
    out.push_back(fmt::format(
        "this process may open {} descriptors more: NICs that come later, and peers by TCP, will "
        "not be used; raise the limit (ulimit -n)",
        host.descriptors_left));
  }
  if (host.lockable_bytes < kLittleLocked && std::any_of(nics.begin(), nics.end(), locks_memory)) {
    out.push_back(fmt::format(
        "this process may lock {} KiB of memory: the device may refuse to register buffers; raise "
        "the limit (ulimit -l unlimited, or memlock in /etc/security/limits.conf)",
        host.lockable_bytes >> 10));
  }
  if (config.shared_memory && host.shared_bytes < kLittleShared) {
    out.push_back(fmt::format(
        "/dev/shm has {} KiB left: messages between processes on this host take a NIC instead; "
        "remove what is left there, or mount it larger (docker run --shm-size)",
        host.shared_bytes >> 10));
  }
  if (config.busy_poll.count() != 0 && !host.polls_when_waiting) {
    out.emplace_back(
        "PULLMAN_BUSY_POLL_US counts for reading alone, not for a sleep that waits for packets; as "
        "root: sysctl -w net.core.busy_poll=50");
  }
}

}  // namespace

HostFacts read_host_facts() {
  HostFacts facts{.descriptors_left = descriptors_left(),
                  .lockable_bytes = limit_of(RLIMIT_MEMLOCK)};
  struct statvfs shared {};
  if (statvfs("/dev/shm", &shared) == 0) {
    facts.shared_bytes = std::uint64_t{shared.f_bavail} * shared.f_frsize;
  }
  int value = 1;
  std::ifstream("/proc/sys/net/core/busy_poll") >> value;
  facts.polls_when_waiting = value != 0;
  return facts;
}

std::vector<NicFacts> read_nic_facts(const std::vector<engine::NicPorts>& nics) {
  const std::vector<nic::LinkFacts> links = nic::read_link_facts();
  std::vector<NicFacts> out;
  for (const engine::NicPorts& nic : nics) {
    const bool known = std::any_of(out.begin(), out.end(), [&nic](const NicFacts& other) {
      return other.name == nic.device.name && other.stream == nic.device.stream;
    });
    if (nic.device.relayed || known) continue;
    const auto link = std::find_if(links.begin(), links.end(), [&nic](const nic::LinkFacts& one) {
      return one.name == nic.device.name;
    });
    out.push_back({.name = nic.device.name,
                   .driver = nic.device.driver,
                   .provider = nic.device.provider,
                   .loopback = nic.device.loopback,
                   .stream = nic.device.stream,
                   .hardware = link != links.end() && link->hardware,
                   .offloads = nic.device.offloads,
                   .limits = nic.data->limits()});
  }
  return out;
}

std::vector<std::string> judge_host(const Config& config, const std::vector<NicFacts>& nics,
                                    const HostFacts& host) {
  std::vector<std::string> out;
  for (const NicFacts& nic : nics) {
    if (uses_sockets(nic)) judge_sockets(config, nic, out);
    judge_offloads(config, nic, out);
  }
  judge_packets(nics, out);
  judge_limits(config, nics, host, out);
  const bool leaves_host =
      std::any_of(nics.begin(), nics.end(), [](const NicFacts& nic) { return !nic.loopback; });
  if (config.security == Config::Security::kOff && leaves_host) {
    out.emplace_back(
        "packets are not protected: anybody who can send to this process may be a peer, and read "
        "and change what is sent; give the job a key (pullman-key)");
  }
  return out;
}

std::string judge_rail(const std::string& peer, const RailCheck& rail) {
  if (rail.finding == RailFinding::kFine) return "";
  return fmt::format("rail {} to {}, from {} ({}) to {}: {}: {}", rail.number, peer, rail.local,
                     rail.nic, rail.remote, name(rail.finding), to_sentence(rail.finding));
}

}  // namespace pullman
