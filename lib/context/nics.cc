#include "context/nics.h"

#include <linux/rtnetlink.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "nic/drivers.h"
#include "nic/interfaces.h"
#include "nic/prefix.h"
#include "nic/socket.h"
#include "wire/protection.h"

namespace pullman {
namespace {

// The headers of a tiny message in a command packet.
constexpr std::size_t kTinyOverhead = 48;

// The interval of reads from the kernel's socket, each of which costs a system call.
constexpr Duration kPause = std::chrono::milliseconds(20);
// The pause between two reads of all NICs: changes come in groups, and a read takes a while.
constexpr Duration kSettling = std::chrono::milliseconds(100);

// The packet size of the loopback if a NIC may appear later: as on Ethernet, since all NICs share
// one pool of packets.
constexpr std::size_t kJumboPacket = 8972;

constexpr std::uint32_t kGroups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;

nic::PortOptions port_options(const Config& config, std::uint16_t port) {
  using std::chrono::microseconds;
  const auto busy_poll = std::chrono::ceil<microseconds>(config.busy_poll);
  return {.receive_packets = config.receive_packets,
          .port = port,
          .receive_buffer_bytes = config.receive_buffer_bytes,
          .busy_poll_us = static_cast<unsigned>(busy_poll.count()),
          .offloads = config.offloads};
}

// The port numbers of a NIC; 0 means any free one.
struct Numbers {
  std::uint16_t command = 0;
  std::uint16_t data = 0;
};

Numbers numbers_of(const Config& config) {
  return {.command = config.port, .data = config.data_port};
}

// Returns how much longer datagrams are than their packets.
std::size_t tag_bytes(const Config& config) {
  return config.security == Config::Security::kOff ? 0 : wire::kTagBytes;
}

engine::NicPorts open_nic(nic::Driver& driver, const nic::Device& device, const Config& config,
                          const Numbers& numbers) {
  engine::NicPorts nic{.device = device, .command = nullptr, .data = nullptr};
  if (config.packet_bytes != 0) {
    nic.device.packet_bytes = std::min(nic.device.packet_bytes, config.packet_bytes);
  }
  nic::PortOptions options = port_options(config, numbers.command);
  options.packet_bytes = std::min(
      std::max(Config::kLeastPacketBytes, config.tiny_bytes + kTinyOverhead) + tag_bytes(config),
      nic.device.packet_bytes);
  nic.command = driver.open(nic.device, options);
  nic::PortOptions data = port_options(config, numbers.data);
  data.link_events = false;  // the command channel's port reports them
  nic.data = driver.open(nic.device, data);
  return nic;
}

nic::Most limits_of(const Config& config, const nic::Driver& driver) {
  return {.nics = config.max_nics,
          .addresses = nic::max_addresses(driver.name()),
          .devices = wire::kMaxNics,
          .least_packet = Config::kLeastPacketBytes + tag_bytes(config)};
}

std::unique_ptr<nic::Driver> make_driver(const Config& config) {
  return nic::make_driver(nic::driver_for(config.driver, config.provider), config.provider);
}

bool has_name(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Returns the beginning of the further addresses.
std::vector<nic::Device>::iterator move_first_addresses_to_front(
    std::vector<nic::Device>& devices) {
  std::vector<std::string> names;
  return std::stable_partition(devices.begin(), devices.end(), [&](const nic::Device& device) {
    if (has_name(names, device.name)) return false;
    names.push_back(device.name);
    return true;
  });
}

bool is_of(const nic::Device& device, const std::string& name, const nic::Address& address) {
  return device.name == name && nic::same_host(device.address, address);
}

}  // namespace

std::vector<std::string> loopback_addresses(const Config& config) {
  std::vector<std::string> addresses;
  if (config.nics.empty()) return addresses;
  const auto driver = make_driver(config);
  const nic::Choice choice =
      nic::choose_devices(nic::devices_of(*driver), config.nics, limits_of(config, *driver));
  std::vector<std::string> names;
  for (const nic::Device& device : choice.chosen) {
    if (!device.loopback) return {};
    if (!nic::is_loopback(device.address)) continue;  // others may reach it
    names.push_back(device.name);
    addresses.push_back(nic::host_string(device.address));
  }
  // What is asked for in another way, a prefix or all but some, may mean another NIC tomorrow.
  const bool exact = std::all_of(config.nics.begin(), config.nics.end(), [&](const auto& wanted) {
    return has_name(names, wanted) || has_name(addresses, wanted);
  });
  return exact ? addresses : std::vector<std::string>{};
}

Nics::Nics(const Config& config)
    : config_(&config),
      driver_(make_driver(config)),
      kernel_(std::make_unique<nic::Netlink>(kGroups)) {}

std::vector<engine::NicPorts> Nics::open() {
  std::vector<engine::NicPorts> nics;
  std::vector<nic::Device> devices = devices_to_begin_with();
  const auto further = move_first_addresses_to_front(devices);
  const std::vector<nic::Device> others(further, devices.end());
  devices.erase(further, devices.end());
  for (const nic::Device& device : devices) {
    try {
      nics.push_back(open_device(*driver_, device));
      note(nics.back());
    } catch (const nic::AddressNotReady& error) {
      log().info("{}; it is waited for", error.what());
      changed_ = true;
    }
  }
  if (nics.empty()) {
    const auto loopback = loopback_among(nic::devices_of(*driver_));
    if (!loopback) throw nic::NicError("no NIC can be used yet, and the loopback is down, too");
    nics.push_back(open_device(*driver_, *loopback));
    note(nics.back());
    stands_in_ = true;
  }
  if (stands_in_) {
    log().warn(
        "no NIC of the network can be used yet: only programs of this host can connect, to {}. "
        "The first NIC that is up and has an address will be used instead",
        nic::to_string(nics.front().command->address()));
  }
  if (config_->last_resort && !nics.front().device.stream) open_last_resort(nics);
  if (!stands_in_) open_further(others, nics);
  return nics;
}

// Opens ports at further addresses. An address is skipped if that fails, or if there is no room for
// it beside the NICs that are known or may still appear.
void Nics::open_further(const std::vector<nic::Device>& devices,
                        std::vector<engine::NicPorts>& nics) {
  for (const nic::Device& device : devices) {
    if (!has_room_for_address()) return;
    try {
      nics.push_back(open_device(*driver_, device));
      note(nics.back());
    } catch (const nic::AddressNotReady& error) {
      log().info("{}; it is waited for", error.what());
      changed_ = true;
    } catch (const nic::NicError& error) {
      log().warn("peers cannot connect to {} of {}: {}", nic::host_string(device.address),
                 device.name, error.what());
    }
  }
}

// Opens a device. It gets the port numbers of its NIC's first address, or else of the first NIC, if
// they are free: so the port and any address lead to this process, also by a NIC that comes up
// later.
engine::NicPorts Nics::open_device(nic::Driver& driver, const nic::Device& device) {
  if (known_.empty()) return open_nic(driver, device, *config_, numbers_of(*config_));
  const Known* of_nic = first_of(device.name);
  const Known& first = of_nic != nullptr ? *of_nic : known_.front();
  try {
    return open_nic(driver, device, *config_, {first.command_port, first.data_port});
  } catch (const nic::AddressNotReady&) {
    throw;
  } catch (const nic::NicError& error) {
    if (config_->port != 0 && config_->data_port != 0) throw;
    log().info("{}; taking another port there", error.what());
    return open_nic(driver, device, *config_, numbers_of(*config_));
  }
}

const Nics::Known* Nics::first_of(const std::string& name) const {
  const auto found = std::find_if(known_.begin(), known_.end(), [&](const Known& known) {
    return !known.beside && known.device.name == name;
  });
  return found != known_.end() ? &*found : nullptr;
}

bool Nics::has_room_for_address() const {
  const std::size_t to_come = config_->max_nics - std::min(count_of_network(), config_->max_nics);
  return known_.size() + to_come < wire::kMaxNics;
}

nic::Most Nics::most() const {
  return limits_of(*config_, *driver_);
}

// Returns the devices that can be opened now; none if those asked for may become usable later, so
// that the loopback is used.
std::vector<nic::Device> Nics::devices_to_begin_with() {
  const auto devices = nic::devices_of(*driver_);
  nic::Choice choice = nic::choose_devices(devices, config_->nics, most());
  const bool nothing = !choice.problem.empty();
  if (nothing && !is_waited_for(choice, devices)) throw nic::NicError(choice.problem);
  if (nothing) {
    log().warn("{}", choice.problem);
    return {};
  }
  for (const std::string& lack : choice.lacks) log().warn("{}; it is waited for", lack);
  nic::Device& first = choice.chosen.front();
  const bool asked_for = has_name(config_->nics, first.name) ||
                         has_name(config_->nics, nic::host_string(first.address));
  stands_in_ = first.loopback && !asked_for;
  if (stands_in_ && nic::list_interfaces().size() > 1) {
    first.packet_bytes = std::min(first.packet_bytes, kJumboPacket);
  }
  return std::move(choice.chosen);
}

// Returns true if no device can be used, but one that was asked for by name or address exists and
// may become usable.
bool Nics::is_waited_for(const nic::Choice& choice, const std::vector<nic::Device>& devices) const {
  const auto interfaces = nic::list_interfaces();
  const bool named = std::any_of(interfaces.begin(), interfaces.end(), [&](const auto& interface) {
    return has_name(config_->nics, interface.name) &&
           (!interface.up || interface.addresses.empty());
  });
  const bool by_address = std::any_of(devices.begin(), devices.end(), [&](const auto& device) {
    return !device.up && has_name(config_->nics, nic::host_string(device.address));
  });
  return choice.chosen.empty() && (named || by_address);
}

std::optional<nic::Device> Nics::loopback_among(const std::vector<nic::Device>& devices) const {
  for (const nic::Device& device : devices) {
    if (!device.loopback || !device.up) continue;
    nic::Device found = device;
    found.packet_bytes = std::min(found.packet_bytes, kJumboPacket);
    return found;
  }
  return std::nullopt;
}

// Opens a stream beside each datagram NIC as the last resort. Its packets are no longer than the
// NIC's, since all share one pool. A stream that cannot be opened is skipped.
void Nics::open_last_resort(std::vector<engine::NicPorts>& nics) {
  const auto driver = nic::make_driver("tcp", "");
  const std::vector<nic::Device> devices = driver->devices();
  const std::size_t datagrams = nics.size();
  for (std::size_t i = 0; i < datagrams && nics.size() < wire::kMaxNics; ++i) {
    const auto device = std::find_if(devices.begin(), devices.end(), [&](const nic::Device& one) {
      return one.up && nic::same_host(one.address, nics[i].device.address);
    });
    if (device == devices.end()) continue;
    nic::Device chosen = *device;
    chosen.packet_bytes = std::min(chosen.packet_bytes, nics[i].device.packet_bytes);
    try {
      nics.push_back(open_device(*driver, chosen));
      note(nics.back());
    } catch (const nic::NicError& error) {
      log().info("no TCP on {} as the last resort: {}", chosen.name, error.what());
    }
  }
}

void Nics::note(const engine::NicPorts& ports) {
  known_.push_back({.device = ports.device,
                    .beside = ports.device.stream && ports.device.driver != driver_->name(),
                    .command_port = nic::port_of(ports.command->address()),
                    .data_port = nic::port_of(ports.data->address())});
}

void Nics::add(const engine::NicPorts& ports) {
  note(ports);
  known_.back().beside = true;
}

void Nics::hear() {
  using Received = nic::Netlink::Received;
  if (kernel_->fd() < 0) return;
  for (int i = 0; i < 64; ++i) {
    if (kernel_->receive([](const nlmsghdr&) {}) == Received::kNothing) return;
    changed_ = true;
  }
}

std::optional<Nics::Change> Nics::poll(Instant now, std::size_t longest_packet,
                                       const InUse& in_use) {
  if (!due(now)) return std::nullopt;
  look_at_ = now + kPause;
  const bool before = changed_;
  hear();
  if (changed_ && !before) settled_at_ = std::max(settled_at_, now + kPause);
  if (!changed_ || now < settled_at_) return std::nullopt;
  std::optional<Change> change;
  try {
    change = find_change(longest_packet, in_use);
  } catch (const nic::NicError& error) {
    log().warn("the NICs cannot be looked at again: {}", error.what());
  }
  if (change) {
    look_at_ = Instant::min();  // there may be more changes
  } else {
    changed_ = move_waits_;
    settled_at_ = now + kSettling;
  }
  return change;
}

// Returns true if the interfaces have changed since the last call. Many changes that the kernel
// reports do not concern them.
bool Nics::is_news() {
  std::vector<Seen> now;
  for (const auto& one : nic::list_interfaces()) now.push_back({one.name, one.addresses, one.up});
  if (now == seen_) return false;
  seen_ = std::move(now);
  return true;
}

// Returns the current devices, with each NIC in use taken to be up, so that no other NIC replaces
// one that is down or gone.
std::vector<nic::Device> Nics::devices_by_now() const {
  auto devices = nic::devices_of(*driver_);
  for (const Known& known : known_) {
    const nic::Device& used = known.device;
    if (known.beside || used.loopback) continue;
    bool there = false;
    for (nic::Device& device : devices) {
      if (device.name != used.name || device.address.kind != used.address.kind) continue;
      device.up = there = true;
    }
    if (!there) devices.push_back(used);
  }
  return devices;
}

// Opens one of the NICs that would be chosen now and is not in use, or is at another address. A NIC
// that cannot be opened is tried again when the kernel reports another change.
std::optional<Nics::Change> Nics::find_change(std::size_t longest_packet, const InUse& in_use) {
  if (!is_news() && !not_ready_ && !move_waits_) return std::nullopt;
  const auto devices = devices_by_now();
  not_ready_ = move_waits_ = false;
  const auto choice = nic::choose_devices(devices, config_->nics, most());
  for (nic::Device device : choice.chosen) {
    const auto number = number_for(device, devices, in_use);
    if (!number) continue;
    device.packet_bytes = std::min(device.packet_bytes, longest_packet);
    try {
      Change change{
          .number = *number, .ports = open_device(*driver_, device), .from = std::nullopt};
      log().info("NIC {} is used from now on, at {}", device.name,
                 nic::to_string(change.ports.command->address()));
      if (*number < known_.size()) {
        Known& known = known_[*number];
        known.device = device;
        known.command_port = nic::port_of(change.ports.command->address());
        known.data_port = nic::port_of(change.ports.data->address());
      } else {
        note(change.ports);
      }
      if (!device.loopback) stands_in_ = false;
      seen_.clear();  // there may be more changes
      return change;
    } catch (const nic::AddressNotReady& error) {
      log().debug("{}: {}", device.name, error.what());
      not_ready_ = true;
    } catch (const nic::NicError& error) {
      log().warn("{}", error.what());
    }
  }
  return find_move(in_use);
}

// Finds an address by which peers are connected and which is gone, and another address of its
// family on the same NIC, by which no peer is connected, to take its place. If peers are connected
// by that one, too, this is tried again. Terminates: after each move there is one address less that
// is gone but in use.
std::optional<Nics::Change> Nics::find_move(const InUse& in_use) {
  const auto devices = nic::devices_of(*driver_);
  const auto there = [&](const Known& known) {
    return std::any_of(devices.begin(), devices.end(), [&](const nic::Device& device) {
      return is_of(device, known.device.name, known.device.address);
    });
  };
  for (std::size_t to = 0; to < known_.size(); ++to) {
    if (known_[to].beside || there(known_[to]) || !in_use(to)) continue;
    for (std::size_t from = 0; from < known_.size(); ++from) {
      const nic::Device& other = known_[from].device;
      const bool fits = !known_[from].beside && other.name == known_[to].device.name &&
                        other.address.kind == known_[to].device.address.kind;
      if (!fits || !there(known_[from])) continue;
      if (in_use(from)) {
        move_waits_ = true;
        continue;
      }
      log().info("NIC {} is used at {} from now on", other.name, nic::host_string(other.address));
      std::swap(known_[from], known_[to]);
      seen_.clear();  // there may be more changes
      return Change{.number = to, .ports = {}, .from = from};
    }
  }
  return std::nullopt;
}

// Returns the number that the device shall have; nothing if it is in use already, or there is no
// room for it.
std::optional<std::size_t> Nics::number_for(const nic::Device& device,
                                            const std::vector<nic::Device>& devices,
                                            const InUse& in_use) const {
  if (device.loopback && stands_in_) return std::nullopt;
  const bool used = std::any_of(known_.begin(), known_.end(), [&](const Known& known) {
    return !known.beside && is_of(device, known.device.name, known.device.address);
  });
  if (used) return std::nullopt;
  for (std::size_t i = 0; i < known_.size(); ++i) {
    const Known& known = known_[i];
    if (known.beside || known.device.name != device.name) continue;
    const bool still_there = std::any_of(devices.begin(), devices.end(), [&](const auto& one) {
      return is_of(one, known.device.name, known.device.address);
    });
    if (!still_there && known.device.address.kind == device.address.kind) return i;
  }
  if (first_of(device.name) != nullptr) {
    const bool further = most().addresses > 1 && has_room_for_address();
    return further ? std::optional(known_.size()) : std::nullopt;
  }
  if (stands_in_ && !in_use(0)) return 0;
  if (count_of_network() >= config_->max_nics || known_.size() >= wire::kMaxNics) {
    return std::nullopt;
  }
  return known_.size();
}

std::size_t Nics::count_of_network() const {
  const auto count = std::count_if(known_.begin(), known_.end(), [&](const Known& known) {
    return first_of(known.device.name) == &known;
  });
  return static_cast<std::size_t>(count) - (stands_in_ ? 1 : 0);
}

}  // namespace pullman
