// The sending calls of the API: messages, and what remote_memory.h sends for puts, gets and
// atomics.
//
// They work as in Context, with the time as a parameter. A request that is in use is refused with
// kBusy and left unchanged.
#pragma once

#include <cstdint>
#include <span>

#include "engine/frames/ack_handler.h"
#include "engine/transmitter.h"
#include "message/operation.h"
#include "message/send_descriptor.h"
#include "pullman/operations.h"
#include "pullman/request.h"

namespace pullman::engine {

enum class Way : std::uint8_t {
  kLater,         // in a turn of the loop
  kNicAtOnce,     // it leaves, or its first packets do, inside the call, and by a NIC
  kMemoryAtOnce,  // the same through memory
};

// How a message to a peer would leave. Valid until the next call to the engine.
struct Departure {
  Peer* peer = nullptr;  // null: the peer is not known
  Way way = Way::kLater;
  // Returns whether a round trip is measured from then: `now` must just have been read.
  bool timed() const { return way == Way::kNicAtOnce; }
};

// One send with options, of segments or of a packer's output. The memory that the segments name,
// and what the packer reads, must stay valid until the request is done, unless the options say that
// the bytes are copied; the list of segments and the packer themselves are copied.
struct SendOp {
  PeerId peer{};
  Tag tag = 0;
  ConstSegments segments{};        // empty if there is a packer
  const Packer* packer = nullptr;  // writes the message, packet by packet
  std::uint64_t length = 0;        // of the packer's message, in bytes
  SendOptions options{};
};

class Sending {
 public:
  Sending(const Config& config, PeerTable& peers, NicTable& nics, ReadyPeers& ready,
          const AckScheduler& acks, PeerLifecycle& lifecycle, AckHandler& ack_handler,
          Transmitter& transmitter, Stats& stats)
      : tiny_bytes_(config.tiny_bytes),
        peers_(peers),
        nics_(nics),
        ready_(ready),
        acks_(acks),
        lifecycle_(lifecycle),
        ack_handler_(ack_handler),
        transmitter_(transmitter),
        stats_(stats) {}

  // Returns how a message to this peer would leave.
  Departure departure(PeerId id) const {
    Peer* peer = peers_.find(id);
    return {peer, peer != nullptr ? way_to(*peer) : Way::kLater};
  }
  // Appends a small message to the packet in which others wait, as happens to nearly all when many
  // are sent. Returns true if it did; the request is then done. On false the caller must call
  // send().
  bool append(const Departure& departure, Tag tag, std::span<const std::byte> bytes,
              Request& request) {
    Peer* peer = departure.peer;
    if (departure.way != Way::kLater || peer == nullptr || !request.done()) return false;
    if (lifecycle_.closing() || peer->phase >= Phase::kClosing || !peer->alarm.checked_in())
      return false;
    if (!peer->outbox.append(tag, bytes)) return false;
    message::Operation::of(request).finish_copied(peer->id, tag, bytes.size());
    note_sent(bytes.size());
    transmitter_.wait_for_turn(*peer);
    return true;
  }
  Status send(Instant now, const Departure& departure, PeerId id, Tag tag,
              std::span<const std::byte> bytes, Request& request);
  // Calls append(), and send() if that returns false.
  Status send(Instant now, PeerId peer, Tag tag, std::span<const std::byte> bytes,
              Request& request) {
    const Departure how = departure(peer);
    if (append(how, tag, bytes, request)) return Status::kOk;
    return send(now, how, peer, tag, bytes, request);
  }
  Status submit(Instant now, const SendOp& op, Request& request);
  // The same for a caller that has called departure() already.
  Status submit(Instant now, const Departure& departure, const SendOp& op, Request& request);

  // Starts a message of any kind.
  Status start(Instant now, const Departure& departure, PeerId id,
               const message::SendDescriptor& descriptor, Request& request);
  // Sends a get or an atomic, whose answer goes to `sink`.
  Status ask(Instant now, PeerId id, const message::SendDescriptor& question, Segments sink,
             Request& request);
  static Status refuse(PeerId id, Tag tag, Status why, Request& request);

 private:
  Way way_to(const Peer& peer) const;
  Status why_not(const Peer* peer) const;
  Status send_copy(Instant now, const Departure& departure, const SendOp& op, Request& request);
  void depart(Instant now, Peer& peer, Way way, std::uint64_t bytes) noexcept;
  void note_sent(std::uint64_t bytes) {
    ++stats_.messages_sent;
    stats_.bytes_sent += bytes;
  }

  const std::size_t tiny_bytes_;
  PeerTable& peers_;
  NicTable& nics_;
  ReadyPeers& ready_;
  const AckScheduler& acks_;
  PeerLifecycle& lifecycle_;
  AckHandler& ack_handler_;
  Transmitter& transmitter_;
  Stats& stats_;
};

}  // namespace pullman::engine
