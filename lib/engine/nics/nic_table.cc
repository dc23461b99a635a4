#include "engine/nics/nic_table.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "nic/prefix.h"

namespace pullman::engine {

NicTable::NicTable(std::uint64_t host, Modules modules)
    : host_(host), modules_(std::move(modules)) {
  PULLMAN_CHECK(!modules_.empty() && modules_.size() <= wire::kMaxNics);
  announced_ = count_announced();
  for (std::size_t i = 0; i < modules_.size(); ++i) enlist(i);
}

const nic::Address& NicTable::address() const {
  const auto outside = std::find_if(modules_.begin(), modules_.end(), [](const auto& module) {
    const nic::Device& device = module->device();
    return !device.loopback && !device.relayed;
  });
  return address_of(outside == modules_.end() ? 0 : outside - modules_.begin());
}

std::unique_ptr<channel::Module> NicTable::put(std::size_t slot,
                                               std::unique_ptr<channel::Module> module) {
  if (slot == modules_.size()) modules_.emplace_back();
  auto before = std::exchange(modules_[slot], std::move(module));
  enlist(slot);
  return before;
}

void NicTable::swap(std::size_t one, std::size_t other) {
  std::swap(modules_[one], modules_[other]);
  for (const std::size_t slot : {one, other}) enlist(slot);
}

void NicTable::forget_state(std::size_t slot) {
  for (const ChannelKind kind : {ChannelKind::kCommand, ChannelKind::kData}) {
    posted_ &= ~channel(slot, kind).mark();
  }
  set_link(slot, true);
}

bool NicTable::is_further_address(std::size_t slot) const {
  const std::size_t first = first_address_of(slot);
  return first != slot && modules_[first]->device().stream == modules_[slot]->device().stream;
}

void NicTable::set_link(std::size_t slot, bool up) {
  const std::uint32_t bit = std::uint32_t{1} << slot;
  links_down_ = up ? links_down_ & ~bit : links_down_ | bit;
}

void NicTable::set_drained(std::uint32_t slots, bool drained) {
  drained_ = drained ? drained_ | slots : drained_ & ~slots;
}

void NicTable::describe(std::size_t count, wire::Hello& hello) const {
  for (std::size_t i = 0; i < count; ++i) {
    hello.nics[i] = describe(*modules_[i]);
    hello.nics[i].device = static_cast<std::uint8_t>(first_address_of(i));
  }
  hello.nic_count = static_cast<std::uint8_t>(count);
}

// All addresses of a NIC, and its last resort, go by the number of the first of them.
std::size_t NicTable::first_address_of(std::size_t slot) const {
  std::size_t first = 0;
  while (modules_[first]->device().name != modules_[slot]->device().name) ++first;
  return first;
}

bool NicTable::several_nics(std::size_t count) const {
  return std::any_of(modules_.begin(), modules_.begin() + count, [&](const auto& module) {
    const nic::Device& first = modules_.front()->device();
    return module->device().name != first.name || module->device().stream != first.stream;
  });
}

wire::NicInfo NicTable::describe(const channel::Module& module) const {
  const Channel& command = module.channel(ChannelKind::kCommand);
  const Channel& data = module.channel(ChannelKind::kData);
  return {.command_packet_bytes = static_cast<std::uint16_t>(command.packet_bytes()),
          .data_packet_bytes = static_cast<std::uint16_t>(data.packet_bytes()),
          .mbps = module.device().mbps,
          .device = 0,
          .distance = module.device().distance,
          .stream = module.device().stream,
          .command = command.port().address(),
          .data = data.port().address()};
}

// Every HELLO has the same length (wire.md 5.5), and must fit into any packet, so it lists the NICs
// that fit: with IPv4 all of them, with IPv6 four, with the longest opaque addresses one.
std::size_t NicTable::count_announced() const {
  wire::Hello hello;
  for (const auto& module : modules_) {
    hello.nics[hello.nic_count] = describe(*module);
    const nic::Address& command = hello.nics[hello.nic_count++].command;
    if (command.length > hello.called.length) hello.called = command;
    if (wire::encoded_bytes(hello) > kHelloBodyBytes) return std::max(hello.nic_count - 1, 1);
  }
  return hello.nic_count;
}

bool NicTable::has_family_of(const nic::Address& address) const {
  return std::any_of(modules_.begin(), modules_.end(), [&](const auto& module) {
    return module->channel(ChannelKind::kCommand).port().address().kind == address.kind;
  });
}

int NicTable::worth(std::size_t slot, const nic::Address& address) const {
  const auto reach = modules_[slot]->channel(ChannelKind::kCommand).port().reach(address);
  if (reach == nic::Reach::kNone) return 0;
  const nic::Device& device = modules_[slot]->device();
  const bool neighbour = device.prefix_bits != 0 && device.address.kind == address.kind &&
                         nic::contains({device.address, device.prefix_bits}, address);
  return (in_trouble(slot) ? 0 : 16) + 2 * static_cast<int>(reach) + (neighbour ? 1 : 0);
}

std::optional<std::size_t> NicTable::relay() const {
  const auto end = modules_.begin() + static_cast<std::ptrdiff_t>(announced_);
  const auto found = std::find_if(modules_.begin(), end,
                                  [](const auto& module) { return module->device().relayed; });
  return found == end ? std::nullopt : std::optional<std::size_t>(found - modules_.begin());
}

nic::Reach NicTable::reach(const nic::Address& address) const {
  nic::Reach best = nic::Reach::kNone;
  for (const auto& module : modules_) {
    if (module->device().relayed) continue;
    best = std::max(best, module->channel(ChannelKind::kCommand).port().reach(address));
  }
  return best;
}

std::uint8_t NicTable::module_for(const nic::Address& address) const {
  if (const auto slot = relay(); slot && nic::is_relayed(address)) {
    return static_cast<std::uint8_t>(*slot);
  }
  std::size_t best = 0;
  for (std::size_t i = 1; i < announced_; ++i) {
    const bool alike = modules_[i]->device().stream == modules_[best]->device().stream;
    if (alike && worth(i, address) > worth(best, address)) best = i;
  }
  return static_cast<std::uint8_t>(best);
}

std::size_t NicTable::nearest(std::span<const nic::Address> addresses) const {
  const auto best_worth = [&](const nic::Address& address) {
    int best = 0;
    for (std::size_t i = 0; i < announced_; ++i) {
      const int its = address_of(i).kind == address.kind ? worth(i, address) : 0;
      best = std::max(best, its);
    }
    return best;
  };
  std::size_t nearest = 0;
  for (std::size_t i = 1; i < addresses.size(); ++i) {
    if (best_worth(addresses[i]) > best_worth(addresses[nearest])) nearest = i;
  }
  return nearest;
}

std::optional<std::uint8_t> NicTable::module_called(const wire::Hello& hello) const {
  for (std::size_t i = 0; i < modules_.size(); ++i) {
    const auto& ours = address_of(i);
    if (!nic::same_port(hello.called, ours)) continue;
    // A NIC that peers are not told of cannot be named as a rail's.
    return i < announced_ ? static_cast<std::uint8_t>(i)
                          : module_for(hello.nics[hello.nic].command);
  }
  // The relay has the address of one NIC, and is called by those of all.
  if (const auto slot = relay();
      slot && nic::is_relayed(hello.called) && is_own_port(nic::unrelayed(hello.called))) {
    return static_cast<std::uint8_t>(*slot);
  }
  return std::nullopt;
}

bool NicTable::is_own_port(const nic::Address& address) const {
  return std::any_of(modules_.begin(), modules_.end(), [&](const auto& module) {
    return nic::same_port(module->channel(ChannelKind::kCommand).port().address(), address);
  });
}

bool NicTable::leads_here(std::uint64_t host, const nic::Address& address) const {
  if (host == 0 || host_ == 0 || host == host_) return false;
  return std::any_of(modules_.begin(), modules_.begin() + announced_, [&](const auto& module) {
    return module->channel(ChannelKind::kCommand).port().is_own(address);
  });
}

void NicTable::forget_own_addresses(std::uint64_t host, std::span<wire::NicInfo> nics) const {
  for (wire::NicInfo& nic : nics) {
    const bool same = nic::same_host(nic.command, nic.data);
    if (leads_here(host, nic.command) || (!same && leads_here(host, nic.data))) {
      nic.command = nic.data = {};
    }
  }
}

void NicTable::enlist(std::size_t slot) {
  for (const ChannelKind kind : {ChannelKind::kCommand, ChannelKind::kData}) {
    Channel& channel = modules_[slot]->channel(kind);
    row_[place_of(slot, kind)] = &channel;
    channel.set_mark(std::uint32_t{1} << place_of(slot, kind));
    all_ |= channel.mark();
    // The first NIC is never a last resort.
    const bool last_resort =
        slot > 0 && modules_[slot]->device().stream && !modules_[0]->device().stream;
    if (last_resort) {
      streams_ |= channel.mark();
    } else {
      packets_per_turn_ = std::min(packets_per_turn_, channel.port().limits().packets_per_turn);
    }
  }
  if ((drained_ & modules_named(modules_[slot]->device().name)) != 0) {
    drained_ |= std::uint32_t{1} << slot;
  }
}

std::uint32_t NicTable::modules_named(std::string_view nic) const {
  std::uint32_t named = 0;
  for (std::size_t i = 0; i < modules_.size(); ++i) {
    if (modules_[i]->device().name == nic) named |= std::uint32_t{1} << i;
  }
  return named;
}

void NicTable::flush_posted() {
  for (std::uint32_t bits = posted_; bits != 0; bits &= bits - 1) {
    Channel& channel = *row_[static_cast<unsigned>(std::countr_zero(bits))];
    if (channel.flush()) moved_ = true;
    if (channel.waiting() == 0) posted_ &= ~channel.mark();
  }
}

}  // namespace pullman::engine
