// A context represents this process on the fabric. Everything begins here.
//
//   pullman::Context context(pullman::Config::from_environment());
//   pullman::PeerId peer = context.connect("10.0.0.2:7100");
//   pullman::Request request;
//   context.send(peer, 42, bytes, request);
//   context.wait(request);
//
// Threads: one thread at a time may call, unless Config::threads is kMany. Different contexts are
// independent. Unless Config::progress says otherwise nothing runs in the background: packets move
// only during the calls below, so a program that does not wait must call progress() regularly.
// Errors: the constructor and connect() throw Error; all else returns a Status, at once or in the
// request. Every operation finishes, with its result or with a status that says why not.
//
// Processes: a context belongs to the process that opened it. In a child of fork() is_inherited()
// is true, close() returns kClosed, the destructor does nothing, and any other call ends the child
// with a sentence on stderr, since both would send different packets under one number. Requests
// that are pending must not be destroyed there. Descriptors close at exec(); until then a child
// keeps the parent's ports taken and, with the driver tcp, its connections open.
//
// Signals may interrupt the program at any time: no call fails or returns early for them. Time is
// CLOCK_MONOTONIC: setting the clock of the host has no effect. A context takes some 8 descriptors
// and 4 for each NIC, whatever the number of peers (the driver tcp: two for each peer, too). If the
// limit (ulimit -n) allows fewer, the constructor says so.
//
// Memory: a call first allocates what it needs for itself (a peer, a list of segments or peers, a
// space, a region, a copy of a request). If that fails it throws std::bad_alloc and has no other
// effect. If the library cannot allocate its own tables, which Config bounds, or the copy from
// which it goes on answering for a region that is unregistered, the process ends by
// std::terminate(), since a turn that is half done cannot be undone.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pullman/config.h"
#include "pullman/multi_receive.h"
#include "pullman/multi_request.h"
#include "pullman/operations.h"
#include "pullman/rails.h"
#include "pullman/request.h"
#include "pullman/stats.h"
#include "pullman/status.h"
#include "pullman/types.h"

namespace pullman {

// This process on the fabric. The head of this file says what holds for all of its calls.
class __attribute__((visibility("default"))) Context {
 public:
  // Opens the NICs. Throws Error(kBadOption) or Error(kNoDevice).
  explicit Context(const Config& config = Config::from_environment());
  // Calls close() if the program has not. Does nothing in a child of fork().
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Returns true in a child of fork(), where another context is to be opened.
  bool is_inherited() const;

  // Returns the address that another process passes to connect() to reach this one, such as
  // "10.0.0.1:7100".
  std::string address() const;

  // Returns the addresses of all NICs that other processes can reach this one at, in the order in
  // which they are preferred here.
  std::vector<std::string> addresses() const;

  // Returns the driver in use, "udp", "tcp" or "fabric", also if Config::driver is "auto".
  std::string driver() const;

  // Returns a handle for the process at `address` ("HOST:PORT", "[V6]:PORT", "hex:..." for fabrics
  // whose addresses are opaque). Returns at once, without waiting for an answer; sends may follow
  // immediately and travel with the first packets. Connecting twice returns the same handle. Throws
  // Error: kInvalidArgument (the address cannot be parsed or resolved), kUnreachable (no NIC in use
  // has an address of that family), kTooManyPeers, kClosed.
  PeerId connect(std::string_view address);
  // The same for a process of which several addresses are known: connects to the one that a NIC of
  // ours reaches best, the first of those.
  PeerId connect(const std::vector<std::string>& addresses);

  // Returns the next peer that connected to this context and to which this context had not
  // connected. Each is returned once, in the order of arrival; peers that are gone are skipped. A
  // program that never calls this pays nothing for it.
  std::optional<PeerId> accept();

  // Returns whether a peer is connected, or what else it is.
  PeerState peer_state(PeerId peer) const;
  // Returns why a peer is kGone, or kOk if it is not.
  Status peer_status(PeerId peer) const;
  // Returns true if the address passed to connect() is this process's own, so that it receives what
  // it sends. Known at once for the addresses of its own NICs, for others once the HELLO is
  // answered.
  bool is_self(PeerId peer) const;
  // Returns true if messages to the peer go through memory now (Config::shared_memory). That begins
  // some time after the first message, and may end.
  bool shares_memory(PeerId peer) const;

  // Sends a message of bytes.size() bytes; 0 is allowed. Returns kOk if the bytes were copied: the
  // request is done and `bytes` may be reused, but the message is still on its way. It is lost if
  // the peer ends before it arrives (peer_status() then says so); close() and disconnect() wait for
  // it. Returns kPending if `bytes` stays in use until request.done(), which then means delivered.
  // Any other status says why nothing was sent; the request is done.
  Status send(PeerId peer, Tag tag, std::span<const std::byte> bytes, Request& request);

  // Posts a receive for the first message from `source` (or kAnyPeer) whose tag matches. Messages
  // of one sender match in the order they were sent, receives in the order they were posted.
  // Returns kOk or kTruncated if an unexpected message completed it at once, kPending, or why it
  // was not posted.
  Status receive(PeerId source, Tag tag, Tag ignore, std::span<std::byte> buffer, Request& request);

  // The same with options. A message that is not copied refers to the bytes of all segments, at
  // most kMaxSegments, until the request is done; `segments` itself may be reused on return.
  // Returns kInvalidArgument if there are too many segments or no such space. With only_copy it
  // returns kBusy if the message would have had to wait, or is too long to be copied: only a
  // message that fits a packet, or one span of up to 2 KiB, is.
  Status send(PeerId peer, Tag tag, std::span<const std::byte> bytes, const SendOptions& options,
              Request& request);
  // The same, of bytes in several places.
  Status send(PeerId peer, Tag tag, ConstSegments segments, const SendOptions& options,
              Request& request);
  // Sends a message of `length` bytes that the packer writes packet by packet. The packer is called
  // until the request is done.
  Status send(PeerId peer, Tag tag, const Packer& packer, std::uint64_t length,
              const SendOptions& options, Request& request);
  // Sends one message to many peers. Each receives it as if it had been sent to that peer alone; a
  // peer that is named twice receives it twice. The sends do not affect each other. Returns
  // kPending, or MultiRequest::status() if all sends are done (with only_copy each was copied or is
  // kBusy). Returns kBusy, without any effect, if the request is pending. A null `message` has no
  // bytes. No other thread may use the request before this returns.
  Status send(std::span<const PeerId> peers, Tag tag, SharedBytes message,
              const SendOptions& options, MultiRequest& request);
  // The receive above, with options.
  Status receive(PeerId source, Tag tag, Tag ignore, std::span<std::byte> buffer,
                 const ReceiveOptions& options, Request& request);
  // The same, into several places.
  Status receive(PeerId source, Tag tag, Tag ignore, Segments segments,
                 const ReceiveOptions& options, Request& request);

  // Posts one buffer for many messages. They match as if a receive were posted again and again at
  // the same place in the order. Returns kPending, or how it ended if unexpected messages used it
  // up. Returns kBusy, without any effect, if it is not done or has messages that were not taken.
  // Any other status says why it was not posted.
  Status receive(PeerId source, Tag tag, Tag ignore, std::span<std::byte> buffer,
                 const ReceiveOptions& options, MultiReceive& receive);

  // Cancels a receive of this context that no message has matched. Returns false, without any
  // effect, if the request is done, idle, already matched, or a send.
  bool cancel(Request& request);
  // The same. Messages that have matched are still completed and returned by take().
  bool cancel(MultiReceive& receive);

  // Returns the message that a receive with these arguments would match now, if there is one. There
  // is none for an unknown peer.
  std::optional<Probe> probe(PeerId source, Tag tag, Tag ignore, std::uint8_t space = 0);

  // Returns the next unexpected message of that space, in the order of arrival. Each is returned
  // once, unless a receive matches it before. For programs that do their own matching over several
  // contexts and claim the messages they want.
  std::optional<Probe> next_unexpected(std::uint8_t space = 0);

  // claim() is probe() that also takes the message out of the matching: no receive and no probe
  // finds it any more. The program must then receive or discard it; until then it uses up its
  // sender's allowance.
  std::optional<Probe> claim(PeerId source, Tag tag, Tag ignore, std::uint8_t space = 0);
  // Receives such a message. Returns kInvalidArgument if none is claimed by that name.
  Status receive_claimed(const Claimed& claimed, std::span<std::byte> buffer, Request& request);
  // The same, into several places.
  Status receive_claimed(const Claimed& claimed, Segments segments, Request& request);
  // Forgets such a message. Returns kInvalidArgument if none is claimed by that name.
  Status discard(const Claimed& claimed);

  // --- One-sided operations, on memory that a peer registered and whose key the program knows.

  // Grants peers access to `bytes`, which must not move until unregister_region(). The program
  // chooses the key; kInvalidArgument means that the key is in use.
  Status register_region(std::uint64_t key, std::span<std::byte> bytes, Access access);
  // The same with a random key, which cannot be guessed. Returns the key.
  std::uint64_t register_region(std::span<std::byte> bytes, Access access);
  // Ends the access: after its return the region is neither read nor written, and operations in
  // progress are refused. Returns false if there is no such key.
  bool unregister_region(std::uint64_t key);

  // Writes `bytes` at that place. Returns kPending; the request is done when they are in place. It
  // ends with kRefusedAccess, and nothing is written, if there is no such key, the region ends too
  // early, or it does not grant the access. Between two processes, puts, gets, atomics and messages
  // take effect, or match, in the order of the calls; but the bytes of an operation of several
  // packets, or of more than 2,000 bytes, may be placed while later operations take effect. A
  // region that is unregistered before all bytes have arrived contains some of them.
  Status put(PeerId peer, const RemotePlace& place, std::span<const std::byte> bytes,
             const PutOptions& options, Request& request);
  // The same, of bytes in several places.
  Status put(PeerId peer, const RemotePlace& place, ConstSegments segments,
             const PutOptions& options, Request& request);
  // Reads as many bytes from that place as `buffer` holds. Fails as put() does.
  Status get(PeerId peer, const RemotePlace& place, std::span<std::byte> buffer, Request& request);
  // The same, into several places.
  Status get(PeerId peer, const RemotePlace& place, Segments segments, Request& request);
  // Applies `atomic` to the elements at that place, exactly once. It is atomic with respect to the
  // atomics of all peers, and to the target's own if it makes them on itself. Needs kWrite, and
  // kRead if it fetches. The place may have any alignment. Returns kInvalidArgument if the
  // operation is not defined for the type, is too long, or its spans do not fit `count`.
  Status atomic(PeerId peer, const RemotePlace& place, const Atomic& atomic, Request& request);

  // Returns the next put() with immediate data whose bytes are in place here. Events that are not
  // taken use up their senders' allowance.
  std::optional<RemoteEvent> take_event();

  // Returns how often peers have used all regions here.
  RemoteUse remote_use() const;
  // The same of one region; zero if there is none.
  RemoteUse remote_use(std::uint64_t key) const;

  // Moves packets. Returns how many were received; 0 means that there was nothing to do. Never
  // blocks.
  std::size_t progress();

  // progress() for a program that reads a queue until it is empty and has just handled all that was
  // in it. Does nothing if the last turn began within 20 us and there is nothing to send, so that
  // the program gets to its reply sooner.
  std::size_t progress_again();

  // Calls progress() until it has received something, and returns how much; 0 if `timeout` expires
  // first. For a program that waits for one of several requests, or has nothing else to do. A
  // request may also have ended by time, so the timeout should not be long. Gives way to other
  // threads, and sleeps, as wait() does.
  std::size_t wait_for_arrival(std::chrono::nanoseconds timeout);

  // Calls progress() and returns whether the request is done.
  bool test(Request& request);
  // The same for sends to many peers.
  bool test(MultiRequest& request);
  // The same; returns whether a message can be taken or the receive is done.
  bool test(MultiReceive& receive);

  // Calls progress() until the request is done and returns its status, or kTimedOut if `timeout`
  // expires first; the request then stays pending. The request belongs to this context or is idle.
  // Gives way to other threads that want the processor: yields after some 40 us in which nothing
  // comes, or sooner; and sleeps if they keep it for long, or if Config::sleep_after says so.
  Status wait(Request& request, std::chrono::nanoseconds timeout = std::chrono::nanoseconds::max());
  // The same for sends to many peers.
  Status wait(MultiRequest& request,
              std::chrono::nanoseconds timeout = std::chrono::nanoseconds::max());
  // The same until a message can be taken or the receive is done. Returns status(), which is
  // kPending if only a message can be taken.
  Status wait(MultiReceive& receive,
              std::chrono::nanoseconds timeout = std::chrono::nanoseconds::max());

  // For a program that sleeps in a loop of its own (poll, epoll, libuv):
  //
  //   while (!context.prepare_wait()) {}    // until there is nothing more to do just now
  //   ... look at the requests: some may be done ...
  //   poll(context.wait_fd() and the program's own descriptors)
  //
  // prepare_wait() calls progress() once and returns true if that received nothing and nothing is
  // left to do at once. From then on wait_fd() becomes readable when progress() has something to
  // do, because something arrived or a timer is due; this ends at the next call here by any thread,
  // getters excepted. The descriptor may only be waited on, does not change, and is closed with the
  // context. If a NIC cannot wake the process (fabric NICs that bypass the kernel) wait_fd() is -1
  // and prepare_wait() always returns false. A program that polls for long is not woken, which
  // makes its packets cheaper; asking for wait_fd() in every turn forgoes that.
  bool prepare_wait();
  // Returns the descriptor of prepare_wait(), or -1.
  int wait_fd() const;

  // Disconnects one peer gracefully: delivers what was accepted for it, then sends BYE. This goes
  // on during progress(). If the peer takes nothing for Config::peer_timeout, what is pending fails
  // with kTimedOut. Later operations on the handle fail with kUnknownPeer or kPeerClosed. An
  // unknown peer is ignored.
  void disconnect(PeerId peer);
  // Forgets the peer at once, without a BYE; what is pending fails with kClosed. For a peer that
  // never answered, for example.
  void abandon(PeerId peer);

  // Returns the rails to a peer, beginning with the one of the handshake; empty if the peer is
  // unknown. With one NIC at either end there is one rail, which is up while the peer is connected.
  // Slow.
  std::vector<RailView> rails(PeerId peer) const;

  // Returns the next rail, of that peer or of any, that has begun or ceased to carry messages, or
  // nothing if none has. Call it after progress(), where rails change. An event reports the current
  // state and how often it has changed since the rail's last event. There is at most one event per
  // rail, so none is lost, and a program that never calls this pays nothing. Events begin when a
  // peer connects. There are none for a peer that has ended (peer_status() says why), nor if there
  // is one NIC at either end, since that rail lives as long as the peer.
  std::optional<RailEvent> take_rail_event(PeerId peer = kAnyPeer);

  // Explains, for people, which NIC is paired with which NIC of the peer and why: a line for each
  // pair, and one for each NIC without a partner. Empty if there is nothing to choose: one NIC at
  // either end, or no answer yet. Slow.
  std::string explain_rails(PeerId peer) const;

  // Checks which packets get through to a peer: over every rail in any state, in both directions,
  // of the smallest and the largest size. It takes a round trip or two if all packets pass, else
  // `limit`: packets are sent four times before they count as lost. Messages are not affected.
  // Returns a row for each rail; none if the peer is unknown.
  std::vector<RailCheck> check_rails(PeerId peer,
                                     std::chrono::nanoseconds limit = std::chrono::seconds(1));

  // The same for many peers at once. begin_check() returns at once; the check starts when the peer
  // is connected, runs during progress(), and ends within `limit`, whatever happens to the peer. A
  // check that is running is restarted. Returns kOk, or why there is no check: kUnknownPeer,
  // kInvalidArgument (`limit` is not from 1 ns to 1 h), kClosed, or the status of a peer that is
  // gone.
  Status begin_check(PeerId peer, std::chrono::nanoseconds limit = std::chrono::seconds(1));
  // Returns what the last check found, or nothing if it is still running or there was none.
  std::optional<std::vector<RailCheck>> check_result(PeerId peer) const;

  // drain_rail() takes a NIC, named as in RailView::nic, out of use for maintenance: both ends move
  // its traffic to other rails at once, and nothing new takes it until restore_rail(). Nothing is
  // lost, and no operation fails. Returns kInvalidArgument if this context uses no such NIC, and
  // kBusy, without any effect, if the NIC is the only way to a peer.
  Status drain_rail(std::string_view nic);
  // Ends drain_rail(), and what Config::sticky_rails keeps out at this end; if both ends keep a
  // rail out, both must call it.
  Status restore_rail(std::string_view nic);

  // Delivers what was accepted, sends BYE to all peers, and closes, within `timeout`. What is still
  // pending then fails with kClosed, and peers that still receive learn that this context is gone
  // (kPeerClosed). Returns kOk if everything was delivered, else kTimedOut; a second call returns
  // the same. Closing a NIC may add to `timeout`, at most 5 s for each.
  Status close(std::chrono::nanoseconds timeout);
  // The same with Config::close_timeout.
  Status close();

  // Returns the counters as they are now.
  Stats stats() const;

  // Returns everything a bug report needs, as text: peers, links, windows, timers. Slow.
  std::string dump() const;

  // What the library's own parts ask of a context. Defined in the library only.
  class Service;

 private:
  friend class CallbackRequest;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pullman
