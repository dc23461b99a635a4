// The NICs of a context: chooses them and opens their ports, at the start, and later when a NIC
// appears or its address changes.
//
// Every NIC has the same ports, those of Config::port and Config::data_port or else those that the
// first NIC was given if they are free, so that a peer can be reached at any of its addresses. With
// kernel sockets a NIC also has ports at its further addresses, of both families. To the engine
// each of those is a NIC of its own, with the same name and after all others. A NIC that is down,
// has no address yet or does not exist is opened when that changes, which the kernel reports over a
// netlink socket. As long as no NIC of the network can be opened, the loopback is used instead.
//
// Knows no engine: the caller owns what is opened, and keeps it under the number given here.
// Threads: one at a time. Only due() is on the hot path.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "engine/engine.h"
#include "nic/choice.h"
#include "nic/netlink.h"
#include "pullman/config.h"

namespace pullman {

// Returns the addresses of the NICs that the configuration asks for, if it names only the loopback:
// by the interface's name, or by addresses that lead nowhere else. A context that uses these, and
// no others that the NICs may be given later, is reached by no other host. Returns nothing if it
// may mean other NICs. Throws nic::NicError if there is no such driver.
std::vector<std::string> loopback_addresses(const Config& config);

class Nics {
 public:
  // Throws nic::NicError if the driver or provider does not exist.
  explicit Nics(const Config& config);

  // Opens the NICs. Returns at least one, best first; they have the numbers 0, 1, ... Throws
  // nic::NicError.
  std::vector<engine::NicPorts> open();

  // Gives the next number to a NIC that the caller has opened itself, and that never changes.
  void add(const engine::NicPorts& ports);

  // Returns true if poll() may return a change.
  bool due(Instant now) const { return now >= look_at_; }
  // Returns when poll() must be called even if the kernel reports nothing more; kNever if it need
  // not be.
  Instant next_deadline() const { return changed_ ? std::max(settled_at_, look_at_) : kNever; }
  // Returns a descriptor that is readable when the kernel has reported a change; -1 if it does not
  // report any.
  int fd() const { return kernel_->fd(); }

  // A new NIC, or a NIC whose address has changed.
  struct Change {
    std::size_t number = 0;           // a known NIC, or the next number
    engine::NicPorts ports;           // its new ports, unless `from` is set:
    std::optional<std::size_t> from;  // a known address of the NIC; it swaps ports with `number`
  };
  // Returns true if a peer is connected by the NIC with that number.
  using InUse = std::function<bool(std::size_t)>;
  // Returns the next change, if any. The packets of its NIC are no longer than `longest_packet`.
  std::optional<Change> poll(Instant now, std::size_t longest_packet, const InUse& in_use);

 private:
  // A NIC that was opened.
  struct Known {
    nic::Device device;
    bool beside = false;  // it is the last resort beside another NIC, or the caller's
    std::uint16_t command_port = 0;
    std::uint16_t data_port = 0;
  };

  // The state of an interface when it was last read.
  struct Seen {
    std::string name;
    std::vector<nic::Address> addresses;
    bool up = false;
    bool operator==(const Seen&) const = default;
  };

  std::vector<nic::Device> devices_to_begin_with();
  bool is_waited_for(const nic::Choice& choice, const std::vector<nic::Device>& devices) const;
  std::optional<nic::Device> loopback_among(const std::vector<nic::Device>& devices) const;
  void open_last_resort(std::vector<engine::NicPorts>& nics);
  void open_further(const std::vector<nic::Device>& devices, std::vector<engine::NicPorts>& nics);
  engine::NicPorts open_device(nic::Driver& driver, const nic::Device& device);
  const Known* first_of(const std::string& name) const;
  nic::Most most() const;
  bool has_room_for_address() const;
  void note(const engine::NicPorts& ports);
  void hear();
  bool is_news();
  std::optional<Change> find_change(std::size_t longest_packet, const InUse& in_use);
  std::optional<Change> find_move(const InUse& in_use);
  std::vector<nic::Device> devices_by_now() const;
  std::optional<std::size_t> number_for(const nic::Device& device,
                                        const std::vector<nic::Device>& devices,
                                        const InUse& in_use) const;
  std::size_t count_of_network() const;

  const Config* config_;
  std::unique_ptr<nic::Driver> driver_;
  std::unique_ptr<nic::Netlink> kernel_;
  std::vector<Known> known_;  // indexed by their numbers
  std::vector<Seen> seen_;    // the interfaces when they were last read
  bool stands_in_ = false;    // the loopback is used in place of a NIC of the network
  bool not_ready_ = false;    // a NIC could not be opened yet when they were last read
  bool move_waits_ = false;   // a NIC could move only to an address by which peers are connected
  bool changed_ = false;      // they are to be read again: the kernel has reported a change, an
                              // address was not ready, or a move became possible
  Instant look_at_ = Instant::min();     // when poll() next does anything
  Instant settled_at_ = Instant::min();  // when a change may be processed
};

}  // namespace pullman
