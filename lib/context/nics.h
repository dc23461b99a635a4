// The NICs of a context: which there are to use, and their ports opened; at the start, and when one
// comes or its address changes later.
//
// Every NIC has the same fixed ports (Config::port, Config::data_port), so that a peer is reached
// at any of its addresses. Of kernel sockets a NIC has ports at its further addresses, too, of both
// families: each is a NIC of its own to the engine, of the same name, behind all others, and has
// the numbers of the NIC's first ports where they are free. A NIC that is down, has no address yet
// or is not there waits: the kernel tells of changes over a socket, and it is opened when it can
// be. Where none of the network's can be, the loopback stands in until one can.
//
// Knows no engine: what it opens is the caller's, who keeps it under the number it is given here.
// Threads: one at a time. Cold, but for due().
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

class Nics {
 public:
  // Throws nic::NicError if the driver or what is asked for does not exist.
  explicit Nics(const Config& config);

  // Best first; at least one, with the numbers 0, 1, ... Throws nic::NicError.
  std::vector<engine::NicPorts> open();

  // Whether poll() may have something.
  bool due(Instant now) const { return now >= look_at_; }
  // When poll() is to be called though the kernel says nothing more; kNever if it need not be.
  Instant next_deadline() const { return changed_ ? std::max(settled_at_, look_at_) : kNever; }
  // Readable when the kernel has told of a change; -1 if it tells of none.
  int fd() const { return kernel_->fd(); }

  // A NIC that has come, or one whose address has changed.
  struct Change {
    std::size_t number = 0;           // one that is known, or the next
    engine::NicPorts ports;           // or, of another address of it that is known:
    std::optional<std::size_t> from;  // which has the ports of `number` from now on
  };
  // Whether somebody is connected by the NIC of that number.
  using InUse = std::function<bool(std::size_t)>;
  // One of them. Its packets are no longer than `longest_packet`.
  std::optional<Change> poll(Instant now, std::size_t longest_packet, const InUse& in_use);

 private:
  // One that was opened.
  struct Known {
    nic::Device device;
    bool beside = false;  // the last resort of another
    std::uint16_t command_port = 0;
    std::uint16_t data_port = 0;
  };

  // An interface as it was seen.
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
  engine::NicPorts open_device(const nic::Device& device);
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
  std::vector<Known> known_;  // by their numbers
  std::vector<Seen> seen_;    // when they were looked at last
  bool stands_in_ = false;
  bool not_ready_ = false;   // one could not be opened then
  bool move_waits_ = false;  // for peers at the only address that one could move to
  bool changed_ = false;     // since they were looked at last
  Instant look_at_ = Instant::min();
  Instant settled_at_ = Instant::min();  // when a change is looked at
};

}  // namespace pullman
