// A channel: one datagram port with its packet size, its batch and its credits to post.
//
// Collects packets into batches for the port and keeps, in order, those the port would not take
// yet. Does not know links: whether a packet may be sent was decided before it comes here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/check.h"
#include "base/time.h"
#include "channel/packet.h"
#include "nic/port.h"

namespace pullman::channel {

class Channel {
 public:
  static constexpr std::size_t kBatch = nic::kBatchPackets;

  Channel(ChannelKind kind, std::unique_ptr<nic::Port> port);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // How many more packets post() accepts before flush() makes room.
  std::size_t room() const { return kBatch - count_; }

  // Adds an encoded packet to the batch. There is room().
  void post(Packet& packet, nic::Destination to);

  // Offers an encoded packet to the port before it is put into the batch, which is empty: one that
  // leaves alone leaves sooner. False: not taken; post() it.
  bool send_alone(const Packet& packet, nic::Destination to) {
    PULLMAN_DCHECK(count_ == 0 && packet.state == PacketState::kInFlight);
    const nic::Outgoing one = as_outgoing(packet, to);
    return port_->send({&one, 1}) == 1;
  }

  // Offers the batch to the port. What it refuses stays, in order, for the next flush. Whether it
  // took any.
  bool flush() { return count_ != 0 && offer(); }

  // Offers packets to the port that shall not wait here, behind those that wait: there is room()
  // for them. How many of them it took.
  std::size_t send_at_once(std::span<const nic::Outgoing> packets) {
    return count_ == 0 ? port_->send(packets) : send_behind(packets);
  }

  // Sends one datagram that nobody remembers (an ACK alone). False if the port has no credit for it
  // now: dropping an ACK is fine, the next one says the same and more.
  bool send_unremembered(std::span<const std::byte> bytes, nic::Destination to);

  // Takes a packet out of the batch before it is reused: acked or abandoned before it left.
  void withdraw(Packet& packet);

  // Receives a batch; see nic::Port. One packet is enough, so that a lone one is not waited for
  // longer than it takes; where that came, or several are expected, all that may be there.
  std::span<const nic::Incoming> receive();
  // At the next receive().
  void expect_several() { enough_ = most_; }
  // The last packets of the batch wait: they are the next one. Those before them are given back.
  void keep(std::size_t packets) { kept_ = packets; }

  // Whether the last kQuietReceives brought nothing: then it need not be asked every turn.
  bool quiet() const { return quiet_receives_ == kQuietReceives; }
  void give_back(std::span<const nic::Incoming> batch) { port_->give_back(batch); }

  nic::Port& port() { return *port_; }
  const nic::Port& port() const { return *port_; }
  ChannelKind kind() const { return kind_; }
  // A bit by which its owner knows it among others.
  std::uint32_t mark() const { return mark_; }
  void set_mark(std::uint32_t bit) { mark_ = bit; }
  std::size_t packet_bytes() const { return port_->limits().packet_bytes; }
  std::size_t waiting() const { return count_; }

 private:
  static constexpr std::uint32_t kQuietReceives = 64;

  static nic::Outgoing as_outgoing(const Packet& packet, nic::Destination to) {
    return {packet.head(), {packet.payload, packet.payload_bytes}, to};
  }
  bool offer();
  std::size_t send_behind(std::span<const nic::Outgoing> packets);
  void drop_first(std::size_t taken);

  ChannelKind kind_;
  std::uint32_t mark_ = 0;
  std::unique_ptr<nic::Port> port_;
  std::size_t most_;                            // packets received in one call
  std::size_t count_ = 0;                       // packets in the batch
  std::array<nic::Outgoing, kBatch> outgoing_;  // what the port is offered
  std::array<Packet*, kBatch> packets_{};       // whose bytes they are
  std::size_t enough_ = 1;                      // packets, for the next receive
  std::uint32_t quiet_receives_ = 0;            // in a row
  std::size_t received_ = 0;                    // packets of the last batch the port gave
  std::size_t kept_ = 0;                        // of them, the last
  std::array<nic::Incoming, kBatch> incoming_;
};

}  // namespace pullman::channel
