// A channel: one datagram port with a batch of outgoing and a batch of incoming packets.
//
// Collects packets into batches for the port, and keeps those that the port does not take yet, in
// order. Has them sealed when the port is to take them, if packets are protected. Does not know
// links: whether a packet may be sent is decided before.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/check.h"
#include "base/time.h"
#include "channel/packet.h"
#include "channel/protector.h"
#include "nic/port.h"

namespace pullman::channel {

struct Run;

class Channel {
 public:
  static constexpr std::size_t kBatch = nic::kBatchPackets;

  // `protector` outlives the channel; null: packets are not protected.
  Channel(ChannelKind kind, std::unique_ptr<nic::Port> port, Protector* protector = nullptr);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Returns how many more packets post() accepts before flush() makes room.
  std::size_t room() const { return kBatch - count_; }

  // Adds an encoded packet to the batch. Needs room().
  void post(Packet& packet, nic::Destination to);

  // Offers an encoded packet to the port without the batch, which is empty, so that a single packet
  // leaves sooner. Returns false if the port did not take it; then post() it.
  bool send_alone(const Packet& packet, nic::Destination to) {
    PULLMAN_DCHECK(count_ == 0 && packet.state == PacketState::kInFlight);
    const nic::Outgoing one = as_outgoing(packet, to);
    if (sealing_ != nullptr) [[unlikely]]
      return seal_and_send(one, origin_of(packet));
    return port_->send({&one, 1}) == 1;
  }

  // Offers the batch to the port. Packets that it does not take stay, in order, for the next flush.
  // Returns true if it took any.
  bool flush() { return count_ != 0 && offer(); }

  // Offers the chunks of runs to the port, in this order, after the packets in the batch: `packets`
  // has an entry for each. They are not kept if the port does not take them. Needs room() for them.
  // Returns how many of them the port took.
  std::size_t send_at_once(std::span<const nic::Outgoing> packets, std::span<Run* const> runs) {
    return count_ == 0 && sealing_ == nullptr ? port_->send(packets) : send_behind(packets, runs);
  }

  // Sends one packet that is not retransmitted (an ACK alone). Returns false if the port cannot
  // take it now. An ACK may then be dropped, since the next one says the same and more.
  bool send_unremembered(std::span<const std::byte> packet, nic::Destination to,
                         const Origin& origin);

  // Removes a packet from the batch that was acknowledged or abandoned before it left, so that it
  // can be reused.
  void withdraw(Packet& packet);

  // Receives a batch; see nic::Port. Normally asks for one packet, so that a single one is not
  // delayed; asks for a full batch after a call that brought what was asked for, or after
  // expect_several().
  std::span<const nic::Incoming> receive();
  void expect_several() { enough_ = most_; }
  // Keeps the last packets of the batch: the next receive() returns them. The caller has given back
  // those before them.
  void keep(std::size_t packets) { kept_ = packets; }

  // Returns true if the last kQuietReceives calls of receive() brought nothing: the channel need
  // not be polled every turn.
  bool quiet() const { return quiet_receives_ == kQuietReceives; }
  void give_back(std::span<const nic::Incoming> batch) { port_->give_back(batch); }

  nic::Port& port() { return *port_; }
  const nic::Port& port() const { return *port_; }
  ChannelKind kind() const { return kind_; }
  // A bit that its owner uses to identify the channel.
  std::uint32_t mark() const { return mark_; }
  void set_mark(std::uint32_t bit) { mark_ = bit; }
  // Return the length of the longest packet that fits a datagram of the port, and of the longest
  // HELLO, WELCOME or CHECK.
  std::size_t packet_bytes() const { return port_->limits().packet_bytes - tag_bytes(); }
  std::size_t initial_packet_bytes() const { return packet_bytes() - initial_bytes(); }
  // Returns by how much the latter is shorter (wire.md 12.1).
  std::size_t initial_bytes() const { return sealing_ == nullptr ? 0 : wire::kInitialBytes; }
  // Returns the length of the longest packet that the path to there is known to carry: a hint.
  std::size_t path_bytes(nic::Destination to) const { return port_->path_bytes(to) - tag_bytes(); }
  // Returns how many packets of this length the port sends as one burst; 0: there are no bursts.
  std::size_t packets_in_burst(std::size_t packet_bytes) const {
    return port_->limits().burst_bytes / (packet_bytes + tag_bytes());
  }
  std::size_t waiting() const { return count_; }

 private:
  static constexpr std::uint32_t kQuietReceives = 64;

  static nic::Outgoing as_outgoing(const Packet& packet, nic::Destination to) {
    return {packet.head(), {packet.payload, packet.payload_bytes}, to};
  }
  static Origin origin_of(const Packet& packet) {
    return {.peer = packet.peer, .rail = packet.rail, .number = packet.number};
  }
  std::size_t tag_bytes() const { return sealing_ == nullptr ? 0 : wire::kTagBytes; }
  // What is needed to seal a batch.
  struct Sealing {
    explicit Sealing(Protector& by) : protector(by) {}

    Protector& protector;
    std::array<Origin, kBatch> origins;
    std::array<nic::Outgoing, kBatch> packets;  // as sealed
  };

  bool offer();
  std::size_t send_behind(std::span<const nic::Outgoing> packets, std::span<Run* const> runs);
  void drop_first(std::size_t taken);
  Origin* note_origins();
  std::size_t send_sealed(std::span<const nic::Outgoing> packets, std::span<const Origin> origins);
  bool seal_and_send(const nic::Outgoing& packet, const Origin& origin) {
    return send_sealed({&packet, 1}, {&origin, 1}) == 1;
  }

  ChannelKind kind_;
  std::uint32_t mark_ = 0;
  std::unique_ptr<nic::Port> port_;
  std::unique_ptr<Sealing> sealing_;            // null: packets leave as they are
  std::size_t most_;                            // upper bound of packets received in one call
  std::size_t count_ = 0;                       // packets in the outgoing batch
  std::array<nic::Outgoing, kBatch> outgoing_;  // the batch as offered to the port
  std::array<Packet*, kBatch> packets_{};       // the packets of the batch
  std::size_t enough_ = 1;                      // packets that the next receive() asks for
  std::uint32_t quiet_receives_ = 0;            // receives in a row without a packet
  std::size_t received_ = 0;                    // packets in the last batch from the port
  std::size_t kept_ = 0;                        // how many of its last packets are kept
  std::array<nic::Incoming, kBatch> incoming_;
};

}  // namespace pullman::channel
