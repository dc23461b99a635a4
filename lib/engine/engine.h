// The engine: the only place where all layers meet. One engine is one process on the
// fabric: its NICs, its peers, its matching, its timers.
//
// Pure but for its ports: it reads no clock, draws no randomness but from its key, and never
// blocks. `now` never runs backwards from one call to the next (a clock that does is clamped by the
// caller). Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/keyed_random.h"
#include "base/time.h"
#include "nic/port.h"
#include "pullman/config.h"
#include "pullman/context.h"
#include "pullman/operations.h"
#include "pullman/rails.h"
#include "pullman/request.h"
#include "pullman/stats.h"
#include "pullman/status.h"
#include "pullman/types.h"

namespace pullman::engine {

// One NIC's two channels, opened.
struct NicPorts {
  nic::Device device;
  std::unique_ptr<nic::Port> command;
  std::unique_ptr<nic::Port> data;
};

// What the engine draws from, and is told, to be told apart from others.
struct Identity {
  KeyedRandom::Key key{};
  std::uint64_t host = 0;  // the same for all processes of a host; 0: not known (wire.md 5.11)
};

// What must balance whatever happens: the simulator's oracles ask after every step.
struct Audit {
  std::size_t packets_in_flight = 0;  // counted in the windows
  std::size_t hotel_guests = 0;       // checked in: equals packets_in_flight, always
  std::size_t packets_taken = 0;      // out of the packet pools
  std::size_t packets_accounted = 0;  // found in windows, queues and channels: equals packets_taken
  std::uint64_t unexpected_bytes = 0;  // charged to peers: at most Config::unexpected_bytes
  std::size_t sends_pending = 0;       // requests in outboxes
  std::size_t receives_posted = 0;     // requests in the matcher or being filled
  std::size_t windows_in_use = 0;      // links that hold a window
  std::uint64_t rails_blamed = 0;      // rails left because they were silent, ever
  // After a turn none of either: in the list of those to be served is who can be.
  std::size_t peers_forgotten = 0;  // with work, credit and window, but not in the list
  std::size_t peers_in_vain = 0;    // in the list, without one of these
};

struct Connected {
  Status status = Status::kOk;
  PeerId peer;
};

// The link to a peer as it stands now.
struct LinkView {
  Duration rtt{};                // smoothed; 0 before the first sample
  std::size_t packet_bytes = 0;  // so long may packets be, on the path as it is known
  std::uint32_t window = 0;      // congestion window, packets
  std::uint32_t in_flight = 0;   // packets
};

struct Peer;

// How a message to a peer would leave. Good until the engine's next call.
struct Departure {
  Peer* peer = nullptr;  // null: it is not known
  bool at_once = false;  // from inside send(), if it is tiny
};

// Of calls, what is theirs alone is allocated before anything happens, and may throw. What is
// noexcept needs memory for the engine's books only: without it the process ends.
class Engine {
 public:
  // `config` is validated. At least one NIC.
  Engine(const Config& config, std::vector<NicPorts> nics, const Identity& identity, Instant now);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // As in Context, with the time given.
  Connected connect(Instant now, const nic::Address& address);
  std::optional<PeerId> accept();
  void disconnect(Instant now, PeerId peer) noexcept;
  void abandon(PeerId peer) noexcept;
  Status send(Instant now, PeerId peer, Tag tag, std::span<const std::byte> bytes,
              Request& request);
  // True: it went into the packet that others wait in, as nearly all of many small ones do, and the
  // request is done. False: it is for send().
  bool append(const Departure& departure, Tag tag, std::span<const std::byte> bytes,
              Request& request);
  // As above for who has asked how it would leave, and looked at the clock for it.
  Status send(Instant now, const Departure& departure, PeerId peer, Tag tag,
              std::span<const std::byte> bytes, Request& request);
  // With SendOptions::only_copy.
  Status send_copy(Instant now, const Departure& departure, PeerId peer, Tag tag,
                   std::span<const std::byte> bytes, const SendOptions& options, Request& request);
  Status receive(Instant now, PeerId source, Tag tag, Tag ignore, std::span<std::byte> buffer,
                 Request& request);
  Status send(Instant now, PeerId peer, Tag tag, ConstSegments pieces, const SendOptions& options,
              Request& request);
  Status send(Instant now, PeerId peer, Tag tag, const Packer& packer, std::uint64_t length,
              const SendOptions& options, Request& request);
  Status receive(Instant now, PeerId source, Tag tag, Tag ignore, Segments pieces,
                 const ReceiveOptions& options, Request& request);
  Status receive(Instant now, PeerId source, Tag tag, Tag ignore, std::span<std::byte> buffer,
                 const ReceiveOptions& options, MultiReceive& receive);
  bool cancel(Request& request);
  std::optional<Probe> probe(PeerId source, Tag tag, Tag ignore, std::uint8_t space = 0);
  std::optional<Probe> next_unexpected(std::uint8_t space);
  std::optional<Probe> claim(PeerId source, Tag tag, Tag ignore, std::uint8_t space = 0);
  Status receive_claimed(Instant now, const Claimed& claimed, Segments pieces, Request& request);
  Status discard(Instant now, const Claimed& claimed) noexcept;
  bool add_region(std::uint64_t key, std::span<std::byte> bytes, Access access);
  std::uint64_t add_region(std::span<std::byte> bytes, Access access);
  bool remove_region(std::uint64_t key) noexcept;
  Status put(Instant now, PeerId peer, const RemotePlace& place, ConstSegments pieces,
             const PutOptions& options, Request& request);
  Status get(Instant now, PeerId peer, const RemotePlace& place, Segments pieces, Request& request);
  Status atomic(Instant now, PeerId peer, const RemotePlace& place, const Atomic& atomic,
                Request& request);
  std::optional<RemoteEvent> take_event();
  RemoteUse remote_use() const;
  RemoteUse remote_use(std::uint64_t key) const;

  // Had anything come before `now`, progress() would have been called: who sleeps says so. Without
  // it, time since the last turn may have passed for packets that nobody took.
  void watched(Instant now);
  // The next turn looks at what others look at once in a while: who wants to sleep need not be
  // woken for it.
  void prepare_to_block();

  // A NIC has come, or one of those there are has another address: the number `slot` is that of one
  // that is there, or the next. Peers are told. Its packets are no longer than longest_packet(),
  // and the old ports of the slot are closed. False: there is no room for it, or it is too late.
  bool set_nic(Instant now, std::size_t slot, NicPorts nic);
  std::size_t longest_packet() const;
  bool is_in_use(std::size_t slot) const;  // a peer that has not ended has a rail by it
  // The address of `to` is gone, and peers go on at that of `from`, which is not in use: from now
  // on either has the other's ports. False: it is too late.
  bool move_nic(Instant now, std::size_t from, std::size_t to);

  // One turn of the loop. Returns packets received.
  std::size_t progress(Instant now) noexcept;

  // Whoever sends to this peer needs a fresh `now` if that leaves at once.
  Departure departure(PeerId peer) const;

  // Whether the next turn sends something, whatever arrives, other than by time.
  bool has_pending_tx() const;

  // When progress() has to be called although nothing arrives; kNever if nothing is due, and at
  // most `now` if there is something to send at once.
  Instant next_deadline() const;

  // For maintenance: from now on, until restore_rail(), nothing but ACKs takes the NIC of that
  // name. kInvalidArgument: there is no such NIC. kBusy: to one peer at least there is no other
  // way.
  Status drain_rail(Instant now, std::string_view nic);
  Status restore_rail(Instant now, std::string_view nic);

  // Closing, in steps: begin_close() once, progress() until drained(), then abort() ends what is
  // left with kClosed; close_abortively(), where it is not drained, tells the peers before. After
  // begin_close() no operation is accepted; peers that connect are ignored.
  void begin_close(Instant now) noexcept;
  bool drained() const;
  void close_abortively(Instant now) noexcept;
  void abort() noexcept;

  PeerState peer_state(PeerId peer) const;
  Status peer_status(PeerId peer) const;
  bool is_self(PeerId peer) const;
  std::optional<LinkView> link(PeerId peer) const;
  // All of a peer's, the one they met on first. Empty if it is not known.
  std::vector<RailView> rails(Instant now, PeerId peer) const;
  std::optional<RailEvent> take_rail_event(PeerId peer);
  std::string explain_rails(PeerId peer) const;
  Status begin_check(Instant now, PeerId peer, Duration limit) noexcept;
  std::optional<std::vector<RailCheck>> check_result(PeerId peer) const;
  const nic::Address& address() const;  // of the first NIC's command channel, not the loopback's

  Stats stats() const;
  Audit audit() const;
  std::string dump() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pullman::engine
