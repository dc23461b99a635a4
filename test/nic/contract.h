// The NIC contract: what nic/port.h promises, put to every driver in the same words.
//
// A PortFactory makes ports of one driver that can reach each other, and says what went wrong
// behind the driver's back. A Bench is two such ports and the verbs the cases are written in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nic/port.h"

namespace pullman::nic::contract {

class PortFactory {
 public:
  virtual ~PortFactory() = default;

  virtual std::unique_ptr<Port> open(const PortOptions& options) = 0;
  // An address of the right kind that cannot be resolved.
  virtual Address unresolvable() = 0;
  // Lets what is under way come further.
  virtual void pass_time() = 0;
  // What the driver did wrong, as far as the device below it saw; empty if nothing. Asked when all
  // ports are closed.
  virtual std::string complaint() = 0;
  // Whether a full send queue can be had by sending faster than the device.
  virtual bool queue_fills() const = 0;
};

using Packet = std::vector<std::byte>;

// A packet of that size whose bytes depend on `seed` and their place.
Packet make_packet(std::size_t bytes, unsigned seed);
// What receive() returns when that is all that came.
inline std::vector<Packet> only(const Packet& packet) {
  return std::vector<Packet>(1, packet);
}

class Bench {
 public:
  Bench(PortFactory& factory, const PortOptions& sender, const PortOptions& receiver);
  explicit Bench(PortFactory& factory) : Bench(factory, {}, {}) {}
  ~Bench();
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  Port& here() { return *here_; }
  Port& there() { return *there_; }
  Destination to() const { return to_; }

  // Events of `here` until `count` have come, and any that follow at once.
  std::vector<PortEvent> events(std::size_t count);
  Destination resolve(const Address& address);

  // Offers the packets until all are taken.
  void send(const std::vector<Packet>& packets);
  // Offers them once; how many were taken.
  std::size_t offer(const std::vector<Packet>& packets);
  void send(Packet packet) { send(std::vector<Packet>{std::move(packet)}); }

  // Of `there`: as many packets as that, each given back when it was copied; fewer if no more come.
  std::vector<Packet> receive(std::size_t count);
  // The same, but still lent.
  std::vector<Incoming> borrow(std::size_t count);
  // Whether nothing (more) arrives at `there`.
  bool nothing_arrives();

  void close_here() { here_.reset(); }

 private:
  void give_time();

  PortFactory& factory_;
  std::unique_ptr<Port> here_;
  std::unique_ptr<Port> there_;
  Destination to_ = kInvalidDestination;
};

}  // namespace pullman::nic::contract
