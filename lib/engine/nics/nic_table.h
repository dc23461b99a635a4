// Our NICs by number, and their channels in one row: which NICs there are, which of them peers are
// told of, which one calls an address, and which channels hold packets to be flushed.
//
// A NIC keeps its number for as long as the engine lives; what is behind the number changes with
// its address (wire.md 9.11). The table does not know peers.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "channel/module.h"
#include "wire/hello.h"

namespace pullman::engine {

using channel::Channel;
using channel::ChannelKind;

// HELLO and WELCOME bodies are padded to this length, so neither is longer than the other (wire.md
// 5.5).
inline constexpr std::size_t kHelloBodyBytes = 328;

class NicTable {
 public:
  using Modules = std::vector<std::unique_ptr<channel::Module>>;

  // Places in the row: the command channels of all modules, then their data channels.
  static constexpr std::size_t kRow = wire::kMaxNics;
  static std::size_t place_of(std::size_t slot, ChannelKind kind) {
    return kind == ChannelKind::kCommand ? slot : kRow + slot;
  }

  // There must be at least one module. `host` names the host of this process (wire.md 5.11).
  NicTable(std::uint64_t host, Modules modules);

  std::size_t size() const { return modules_.size(); }
  channel::Module& operator[](std::size_t slot) const { return *modules_[slot]; }
  Channel& channel(std::size_t slot, ChannelKind kind) const { return (*this)[slot].channel(kind); }
  Channel& at(std::size_t place) const { return *row_[place]; }
  const nic::Address& address_of(std::size_t slot) const {
    return channel(slot, ChannelKind::kCommand).port().address();
  }
  // Returns the address of the first NIC that leads out of this host; of the first, if none does.
  // The relay does not count.
  const nic::Address& address() const;
  template <typename Visit>
  void for_each_channel(Visit visit) const {
    for (const auto& module : modules_) {
      visit(module->channel(ChannelKind::kCommand));
      visit(module->channel(ChannelKind::kData));
    }
  }

  // Masks have a bit for the place of each channel, or for the slot of each module.
  std::uint32_t all_channels() const { return all_; }
  std::uint32_t stream_channels() const { return streams_; }  // those of a last resort

  // --- NICs that come and change

  // Puts a module into the next slot, or replaces that of an existing slot, which it returns.
  std::unique_ptr<channel::Module> put(std::size_t slot, std::unique_ptr<channel::Module> module);
  void swap(std::size_t one, std::size_t other);
  // Forgets that the slot's channels are to be flushed, and counts its link as up.
  void forget_state(std::size_t slot);
  // Returns whether the slot is one of several addresses of a NIC, and not the first of them.
  bool is_further_address(std::size_t slot) const;

  // --- links, and what the operator wants

  std::uint32_t links_down() const { return links_down_; }
  void set_link(std::size_t slot, bool up);
  std::uint32_t drained() const { return drained_; }
  void set_drained(std::uint32_t slots, bool drained);
  // Returns the modules of the NIC of that name, a bit for each.
  std::uint32_t modules_named(std::string_view nic) const;
  bool in_trouble(std::size_t slot) const { return ((links_down_ | drained_) >> slot & 1) != 0; }

  // --- what peers are told of them

  // Returns how many NICs, the first ones, a new peer is told: a HELLO has no room for more.
  std::size_t announced() const { return announced_; }
  void announce_again() { announced_ = count_announced(); }
  // Writes the first `count` NICs into the HELLO.
  void describe(std::size_t count, wire::Hello& hello) const;
  // Returns whether the first `count` are of several NICs: rails are between NICs, not between
  // addresses of one.
  bool several_nics(std::size_t count) const;

  // --- which NIC an address belongs to

  // Returns whether one of our NICs has an address of this kind: no other can get there.
  bool has_family_of(const nic::Address& address) const;
  // Returns the NIC to call an address from: of those that work, the first that reaches it best.
  std::uint8_t module_for(const nic::Address& address) const;
  // Returns how our NICs, without the relay, reach that address at best.
  nic::Reach reach(const nic::Address& address) const;
  // Returns which of those addresses of a process one of our NICs reaches best; the first of them,
  // if there are several.
  std::size_t nearest(std::span<const nic::Address> addresses) const;
  // Returns the NIC that a HELLO or WELCOME was sent to; nothing if it was meant for another
  // process.
  std::optional<std::uint8_t> module_called(const wire::Hello& hello) const;
  // Returns whether this is the address of the command channel of one of our NICs.
  bool is_own_port(const nic::Address& address) const;
  // Returns whether an address that a process of that host names as its own leads here: this host
  // has it, too, and what is sent there from here stays here (wire.md 5.11).
  bool leads_here(std::uint64_t host, const nic::Address& address) const;
  // Returns whether a HELLO means this engine, and can be answered: the address that it comes from
  // does not lead here.
  bool is_called(const wire::Hello& hello) const {
    return module_called(hello).has_value() &&
           !leads_here(hello.host, hello.nics[hello.nic].command);
  }
  // Clears the addresses of those of the host's NICs that lead here; their numbers stay.
  void forget_own_addresses(std::uint64_t host, std::span<wire::NicInfo> nics) const;

  // --- packets that wait in channels

  void note_posted(const Channel& channel) { posted_ |= channel.mark(); }
  bool has_posted() const { return posted_ != 0; }
  void flush() {
    if (posted_ != 0) flush_posted();
  }
  void begin_turn() { moved_ = false; }
  // Returns whether a port has taken something this turn.
  bool moved() const { return moved_; }
  void note_moved() { moved_ = true; }
  // Returns how many packets one turn sends at most (nic::PortLimits).
  std::size_t packets_per_turn() const { return packets_per_turn_; }

 private:
  void enlist(std::size_t slot);
  std::size_t first_address_of(std::size_t slot) const;
  // Returns the relay among those that peers are told of; nothing if there is none.
  std::optional<std::size_t> relay() const;
  // Returns how well a NIC reaches an address, for comparison; 0: not at all.
  int worth(std::size_t slot, const nic::Address& address) const;
  wire::NicInfo describe(const channel::Module& module) const;
  std::size_t count_announced() const;
  void flush_posted();

  const std::uint64_t host_;
  Modules modules_;
  std::array<Channel*, 2 * kRow> row_{};
  std::size_t announced_ = 0;
  std::size_t packets_per_turn_ = Channel::kBatch;
  std::uint32_t all_ = 0;
  std::uint32_t streams_ = 0;
  std::uint32_t posted_ = 0;  // channels in which packets may wait
  std::uint32_t links_down_ = 0;
  std::uint32_t drained_ = 0;
  bool moved_ = false;
};

}  // namespace pullman::engine
