// A context: this process on the fabric. Everything begins here.
//
//   pullman::Context context(pullman::Config::from_environment());
//   pullman::PeerId peer = context.connect("10.0.0.2:7100");
//   pullman::Request request;
//   context.send(peer, 42, bytes, request);
//   context.wait(request);
//
// Threads: one at a time, unless Config::threads says many. Different contexts are independent.
// Nothing runs in the background: packets move during the calls below, so a program that waits for
// nothing calls progress() now and then. Errors: constructing and connect() throw Error; everything
// else returns a Status, at once or in the request. Every operation finishes: with its result, or
// with a status that says why not.
//
// Memory: what a call needs for itself (a peer, notes of several segments or peers, a space, a
// region, the copy of a question) it gets first. If there is none it throws std::bad_alloc, and
// nothing has happened. What the library needs for its own books, bounded by Config, and to go on
// answering from a region that is taken back, it has, or the process ends by std::terminate(): half
// a turn cannot be taken back.
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

class __attribute__((visibility("default"))) Context {
 public:
  // Opens the NICs. Throws Error: kBadOption, kNoDevice.
  explicit Context(const Config& config = Config::from_environment());
  // Closes with Config::close_timeout if close() was not called.
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // What another process passes to connect() to reach this one: "10.0.0.1:7100".
  std::string address() const;

  // The driver that opened the NIC: "udp", "tcp" or "fabric"; what Config::driver = "auto" came to.
  std::string driver() const;

  // A handle for the process at `address` ("HOST:PORT", "[V6]:PORT", "hex:..." for fabrics whose
  // addresses are opaque). Returns at once, without waiting for an answer: sends may follow
  // immediately and travel with the first packets. Connecting twice gives the same handle. Throws
  // Error: kInvalidArgument (cannot parse or find it), kUnreachable (an IPv6 address, say, and no
  // NIC in use has one), kTooManyPeers, kClosed.
  PeerId connect(std::string_view address);

  // The next process that connected to us without our having connected to it. Each once, in the
  // order they came; one that has been forgotten since is passed over. A program that never asks
  // pays nothing for it.
  std::optional<PeerId> accept();

  PeerState peer_state(PeerId peer) const;
  // Why a peer is kGone; kOk while it is not.
  Status peer_status(PeerId peer) const;
  // The name that was called leads to this very process: what is sent to it comes back. Known at
  // once of the addresses of its own NICs, of others when the call is answered.
  bool is_self(PeerId peer) const;

  // Sends a message of bytes.size() bytes (0 is fine). Returns kOk when the bytes were copied: the
  // request is done and `bytes` yours again, but the message is on its way, and is lost if the peer
  // goes before it arrives (peer_status() then says so; close() or disconnect() waits for it).
  // Returns kPending when `bytes` stays in use until request.done(), which then means delivered.
  // Otherwise a status that says why nothing was sent, with the request done.
  Status send(PeerId peer, Tag tag, std::span<const std::byte> bytes, Request& request);

  // Posts a receive for the first message from `source` (or kAnyPeer) whose tag matches: messages
  // of one sender match in the order they were sent, receives in the order they were posted.
  // Returns kOk or kTruncated when a waiting message completed it at once, kPending, or why it was
  // not posted.
  Status receive(PeerId source, Tag tag, Tag ignore, std::span<std::byte> buffer, Request& request);

  // The same with options. A message that is not copied refers to the bytes of all segments, at
  // most kMaxSegments, until the request is done; `segments` itself is the caller's again on
  // return. kInvalidArgument: too many segments, no such space. kBusy with only_copy: it would have
  // had to wait, or is too long: copied is what fits a packet, and one span of up to 2 KiB.
  Status send(PeerId peer, Tag tag, std::span<const std::byte> bytes, const SendOptions& options,
              Request& request);
  Status send(PeerId peer, Tag tag, ConstSegments segments, const SendOptions& options,
              Request& request);
  // A message of `length` bytes that the packer makes, packet by packet, until the request is done.
  Status send(PeerId peer, Tag tag, const Packer& packer, std::uint64_t length,
              const SendOptions& options, Request& request);
  // One message to many peers, each of which receives it as if it had been sent to it alone; a peer
  // named twice has it twice. What becomes of one has no bearing on the others. Returns kPending,
  // or how all ended if all are done (MultiRequest::status(); with only_copy each was copied or is
  // kBusy); kBusy, and nothing happened, if the request is pending. No message: no bytes. Before
  // it returns no other thread uses the request.
  Status send(std::span<const PeerId> peers, Tag tag, SharedBytes message,
              const SendOptions& options, MultiRequest& request);
  Status receive(PeerId source, Tag tag, Tag ignore, std::span<std::byte> buffer,
                 const ReceiveOptions& options, Request& request);
  Status receive(PeerId source, Tag tag, Tag ignore, Segments segments,
                 const ReceiveOptions& options, Request& request);

  // Posts one buffer for many messages, which match as they would a receive that is posted again
  // and again at the same place. Returns kPending, or how it ended if waiting messages used it up;
  // kBusy, and nothing happened, if it is not done or has messages that were not taken; or why it
  // was not posted.
  Status receive(PeerId source, Tag tag, Tag ignore, std::span<std::byte> buffer,
                 const ReceiveOptions& options, MultiReceive& receive);

  // Takes back a receive of this context that no message has matched. False, and nothing changed,
  // if it is done, idle or already matched, or a send: those cannot be cancelled.
  bool cancel(Request& request);
  // The same; what has matched goes on, and is told.
  bool cancel(MultiReceive& receive);

  // The message a receive with these arguments would match now, if there is one; none for a peer
  // that is not known.
  std::optional<Probe> probe(PeerId source, Tag tag, Tag ignore, std::uint8_t space = 0);

  // The next message of that space that has come and that no receive has matched, in the order they
  // came. Each is told once, unless it is matched before: for who matches messages of several
  // contexts himself, and claims what he wants.
  std::optional<Probe> next_unexpected(std::uint8_t space = 0);

  // As probe(); the message found is taken out of the matching: no receive and no probe finds it
  // any more, only these two. Who claims must receive or discard: till then it uses up its
  // sender's allowance. kInvalidArgument: nothing of that name is claimed (any more).
  std::optional<Probe> claim(PeerId source, Tag tag, Tag ignore, std::uint8_t space = 0);
  Status receive_claimed(const Claimed& claimed, std::span<std::byte> buffer, Request& request);
  Status receive_claimed(const Claimed& claimed, Segments segments, Request& request);
  Status discard(const Claimed& claimed);

  // --- One-sided operations: on memory that a peer registered, under a key that it told.

  // Lets peers at `bytes`, which stay where they are until unregister_region(). Keys are the
  // program's to choose; kInvalidArgument: it is taken.
  Status register_region(std::uint64_t key, std::span<std::byte> bytes, Access access);
  // With a key that is drawn, and not to be guessed.
  std::uint64_t register_region(std::span<std::byte> bytes, Access access);
  // From its return on nothing is read there or written; what is under way is refused. False: no
  // such key.
  bool unregister_region(std::uint64_t key);

  // Writes `bytes` at that place. kPending; done when they are in place, or with kRefusedAccess,
  // and nothing written, if there is no such key, not enough room behind the offset, or no right.
  // Between one pair of processes puts, gets, atomics and messages take effect, or match, in the
  // order of the calls; the bytes of one that takes several packets, or has more than 2,000, may
  // be placed while later ones take effect. A region that is unregistered before all bytes have
  // come has some of them.
  Status put(PeerId peer, const RemotePlace& place, std::span<const std::byte> bytes,
             const PutOptions& options, Request& request);
  Status put(PeerId peer, const RemotePlace& place, ConstSegments segments,
             const PutOptions& options, Request& request);
  // Reads as many bytes as `buffer` holds from there. Fails as put() does.
  Status get(PeerId peer, const RemotePlace& place, std::span<std::byte> buffer, Request& request);
  Status get(PeerId peer, const RemotePlace& place, Segments segments, Request& request);
  // Does `atomic` to the elements there, exactly once; atomic for other atomics of all peers, and
  // of the target itself if it calls itself. Needs kWrite, to fetch kRead. The place may be
  // aligned in any way. kInvalidArgument: not defined, too long, spans of other lengths.
  Status atomic(PeerId peer, const RemotePlace& place, const Atomic& atomic, Request& request);

  // The next put() with immediate data that has been placed here. Those not taken use up their
  // senders' allowance.
  std::optional<RemoteEvent> take_event();

  // How often peers have used regions here: all of them, or that one (nothing if there is none).
  RemoteUse remote_use() const;
  RemoteUse remote_use(std::uint64_t key) const;

  // Moves packets. Returns how many were received; 0 means there was nothing to do. Never blocks.
  std::size_t progress();

  // progress() for whoever has just been told of all there was and asks once more, as one does who
  // reads a queue until it is empty: does nothing if the last turn began within 20 us and there
  // is nothing to send, so that the program comes to its answer.
  std::size_t progress_again();

  // progress(), then whether the request is done.
  bool test(Request& request);
  bool test(MultiRequest& request);
  // Whether a message can be taken, or it is done.
  bool test(MultiReceive& receive);

  // Calls progress() until the request is done, and returns its status; kTimedOut when `timeout` is
  // over first (the request stays pending). The request is one of this context's, or idle. Sleeps
  // in between if Config::sleep_after says so.
  Status wait(Request& request, std::chrono::nanoseconds timeout = std::chrono::nanoseconds::max());
  Status wait(MultiRequest& request,
              std::chrono::nanoseconds timeout = std::chrono::nanoseconds::max());
  // Until a message can be taken, or it is done: then status(), which is kPending in the one case.
  Status wait(MultiReceive& receive,
              std::chrono::nanoseconds timeout = std::chrono::nanoseconds::max());

  // For a program that sleeps in a loop of its own (poll, epoll, libuv):
  //
  //   while (!context.prepare_wait()) {}    // until there is nothing more to do just now
  //   ... look at the requests: some may be done ...
  //   poll(context.wait_fd() and the program's own descriptors)
  //
  // prepare_wait() is one progress(); true if it brought nothing and nothing is to be done at once.
  // From then on wait_fd() becomes readable when progress() has something to do, because something
  // came or because time has passed; until the next call of anything but a getter here, by any
  // thread. wait_fd() is only to be waited on, stays the same, and is closed with the context; -1,
  // and prepare_wait() false for ever, if a NIC cannot wake anybody (those of fabric that bypass
  // the kernel). Who polls for long is not woken, which makes his packets cheaper; to ask for
  // wait_fd() in every turn forgoes that.
  bool prepare_wait();
  int wait_fd() const;

  // Forgets one peer in good order: what was accepted for it is delivered, then it is told. This
  // goes on during progress(); a peer that takes nothing for Config::peer_timeout ends it, and what
  // is pending fails with kTimedOut. Later operations on the handle fail with kUnknownPeer or
  // kPeerClosed. Nothing happens if the peer is not known.
  void disconnect(PeerId peer);
  // Forgets it at once, and does not tell it: what is pending fails with kClosed. For one that
  // never answered, say.
  void abandon(PeerId peer);

  // The rails to a peer, the one they met on first; empty if it is not known. With one NIC at
  // either end there is one rail, which is up while the peer is connected. Cold.
  std::vector<RailView> rails(PeerId peer) const;

  // The next rail that has begun to carry messages, or no longer does, of that peer or of any;
  // none: nothing has changed. To be asked after progress(): it happens there. An event is the
  // state of now, and says how often that has changed since it was told; a rail has one at a time,
  // so none is lost, and a program that never asks pays nothing for it. A peer's rails come when it
  // connects. None is told of a peer that has ended (peer_status() says why), nor where there is
  // one NIC at either end: its rail comes and goes with the peer.
  std::optional<RailEvent> take_rail_event(PeerId peer = kAnyPeer);

  // Which NIC works with which of the peer's, and why, for people: a line for each pair, and one
  // for each NIC that has no partner. Empty where there is nothing to choose: one NIC at either
  // end, or no answer yet. Cold.
  std::string explain_rails(PeerId peer) const;

  // Checks which packets get through to a peer: over every rail, both ways, the smallest and the
  // largest, whatever state the rail is in. It takes a round trip or two where all is fine, else
  // `limit`: packets are sent four times before they count as lost. Messages go on meanwhile, and
  // notice nothing. Returns a row for each rail; none if the peer is not known.
  std::vector<RailCheck> check_rails(PeerId peer,
                                     std::chrono::nanoseconds limit = std::chrono::seconds(1));

  // The same for many peers at a time. begin_check() returns at once: the check goes on during
  // progress(), from when the peer is connected, and ends within `limit`, whatever becomes of the
  // peer. One that is under way begins anew. kOk; else why there is none: kUnknownPeer,
  // kInvalidArgument (`limit` is not from 1 ns to 1 h), kClosed, or how the peer went.
  Status begin_check(PeerId peer, std::chrono::nanoseconds limit = std::chrono::seconds(1));
  // What the last check found; nothing while it is under way, or if there was none.
  std::optional<std::vector<RailCheck>> check_result(PeerId peer) const;

  // For maintenance of a NIC, named as RailView::nic: what is on it goes to other rails at once, at
  // both ends, and nothing new takes it until restore_rail(). Nothing is lost, and no operation
  // notices. kInvalidArgument: this context uses no such NIC. kBusy, and nothing changed: it is the
  // only way to a peer.
  // restore_rail() also takes back what Config::sticky_rails keeps out here; where both ends do,
  // both have to.
  Status drain_rail(std::string_view nic);
  Status restore_rail(std::string_view nic);

  // Delivers what was accepted, says good-bye to all peers, and closes; at most `timeout` long.
  // What is still pending then fails with kClosed, and peers that still hear us learn that we have
  // gone (kPeerClosed). kOk if everything was delivered, else kTimedOut;
  // called again it says the same. Closing a NIC may add to `timeout`, at most 5 s each.
  Status close(std::chrono::nanoseconds timeout);
  Status close();

  Stats stats() const;

  // Everything a bug report needs, as text: peers, links, windows, timers. Cold.
  std::string dump() const;

 private:
  struct Idle;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pullman
