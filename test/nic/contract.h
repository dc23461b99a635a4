// The NIC contract: the promises of nic/port.h, tested on every driver by the same cases.
//
// A PortFactory makes ports of one driver that can reach each other, and reports misuse of the
// device. A Bench is two such ports, and the operations that the cases are written in.
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
  // Lets time pass for what is under way.
  virtual void pass_time() = 0;
  // Returns what the driver did wrong in the view of its device; empty if nothing. Called when all
  // ports are closed.
  virtual std::string complaint() = 0;
  // Whether sending faster than the device fills the send queue.
  virtual bool queue_fills() const = 0;
};

using Packet = std::vector<std::byte>;

// Makes a packet of that size whose bytes depend on `seed` and their offset.
Packet make_packet(std::size_t bytes, unsigned seed);
// The result of receive() if only this packet came.
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

  // Returns events of `here`: `count` of them, and any that follow at once.
  std::vector<PortEvent> events(std::size_t count);
  Destination resolve(const Address& address);

  // Offers the packets until all are taken.
  void send(const std::vector<Packet>& packets);
  // Offers them once; returns how many were taken.
  std::size_t offer(const std::vector<Packet>& packets);
  void send(Packet packet) { send(std::vector<Packet>{std::move(packet)}); }

  // Receives up to `count` packets at `there` and gives each back at once; fewer if no more come.
  std::vector<Packet> receive(std::size_t count);
  // The same, but the packets stay lent.
  std::vector<Incoming> borrow(std::size_t count);
  // Returns whether nothing (more) arrives at `there`.
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
