// An endpoint: one pullman::Context, and where the completions of its operations go. Opens its NICs
// when it is enabled (or asked for its name). Everything under the domain's lock.
#pragma once

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "ofi/address.h"
#include "ofi/calls.h"
#include "ofi/memory_region.h"
#include "ofi/operation.h"
#include "ofi/outlets.h"
#include "ofi/peers.h"
#include "ofi/place.h"
#include "ofi/promises.h"
#include "ofi/send_copies.h"
#include "ofi/shared_buffers.h"
#include "ofi/triggers.h"
#include "pullman/context.h"

namespace pullman::ofi {

class AddressVector;
class CompletionQueue;
class Counter;
class Domain;
class Endpoint;
class Waitable;

// What an application holds: the endpoint itself, or an alias of it that has other default flags.
struct EndpointHandle : fid_ep {
  Endpoint* endpoint = nullptr;
  std::uint64_t send_flags = 0;  // of calls that say none
  std::uint64_t receive_flags = 0;
};

class Endpoint {
 public:
  static int open(fid_domain* domain, fi_info* info, fid_ep** out, void* context);

  static EndpointHandle& handle_of(fid_ep* handle) { return static_cast<EndpointHandle&>(*handle); }
  static Endpoint& from(fid_ep* handle) { return *handle_of(handle).endpoint; }

  Domain& domain() { return domain_; }
  // Once its NICs are open.
  Context& context() { return *context_; }

  // --- Under the lock, for queues, counters and address vectors.

  void progress() { progress_by(&Context::progress); }
  void progress_again() { progress_by(&Context::progress_again); }
  bool prepare_wait() {
    begin_turn();
    const bool nothing = step_in();
    awaited_.store(nothing, std::memory_order_relaxed);
    return nothing;
  }
  int wait_descriptor() const { return context_ ? context_->wait_fd() : -1; }

  // --- For the progress thread, once its NICs are open.

  // How often the application let packets move.
  std::uint64_t turns() const { return turns_.load(std::memory_order_relaxed); }
  // The application waits for the descriptor, and did nothing since that makes it miss its time.
  bool awaited() const { return awaited_.load(std::memory_order_relaxed); }
  // The descriptor is readable.
  bool has_work() const;
  // As prepare_wait(), in the application's place. Under the lock.
  bool step_in() {
    if (!context_) return true;
    const bool nothing = context_->prepare_wait();
    if (is_reached_) take_events();
    const bool more = shared_.refill_due();
    if (more) refill();
    return !triggers_.run() && !more && nothing;
  }

  // Its packets bring that counter news; or not any more, unless it is the endpoint's own.
  void feed(Counter& counter);
  void stop_feeding(Counter& counter);

  // --- Under the lock, for triggers.

  // Whether it could be carried out later, as work: 0 or an error number.
  template <typename Call>
  ssize_t check_work(const Call& call) const;
  // Its time has come. False: not now, ask again; otherwise it has begun, or has failed and said
  // so.
  bool begin(const Deferred& deferred);
  // What could not begin has its place back: from now on it may be asked again.
  void try_again() { full_ = false; }
  // It never begins.
  void drop(const Deferred& deferred, Status why);
  // An operation under way will be counted there.
  bool counts_for(const Counter& counter);

  // Connects to the address of that number; an error number if that is impossible.
  int meet(fi_addr_t number, const Address& address);
  void forget(fi_addr_t number);

  // --- The application's calls; they take the lock.

  ssize_t send(const SendCall& call);
  ssize_t receive(const ReceiveCall& call);
  ssize_t access(const MemoryCall& call);
  ssize_t operate(const AtomicCall& call);
  // The same, now or, with FI_TRIGGER, when their time has come: the calls that say flags.
  ssize_t call(const SendCall& asked) { return is_later(asked) ? defer(asked) : send(asked); }
  ssize_t call(const ReceiveCall& asked) { return is_later(asked) ? defer(asked) : receive(asked); }
  ssize_t call(const MemoryCall& asked) { return is_later(asked) ? defer(asked) : access(asked); }
  ssize_t call(const AtomicCall& asked) { return is_later(asked) ? defer(asked) : operate(asked); }
  ssize_t cancel(void* context);

  int bind(fid& other, std::uint64_t flags);
  int enable();
  // `handle`: the endpoint's own, or an alias's.
  int close(EndpointHandle& handle);
  int make_alias(const EndpointHandle& original, struct fi_alias& wish);
  int get_name(void* out, std::size_t* length);
  int set_name(const void* address, std::size_t length);
  int get_option(int name, void* out, std::size_t* length) const;
  int set_option(int name, const void* value, std::size_t length);

 private:
  Endpoint(Domain& domain, const fi_info& info, void* context);
  ~Endpoint();

  // The NICs, the context and the peers; throws Error.
  void open_context();
  int bind_queue(CompletionQueue& queue, std::uint64_t flags);
  int bind_counter(Counter& counter, std::uint64_t flags);
  std::vector<Waitable*> waitables() const;

  // The application lets packets move. No read-modify-write: nobody else writes.
  void begin_turn() {
    turns_.store(turns() + 1, std::memory_order_relaxed);
    undo_wait();
  }
  void progress_by(std::size_t (Context::*turn)()) {
    begin_turn();
    if (!context_) return;
    (*context_.*turn)();
    if (shared_.refill_due()) refill();
    if (is_reached_) take_events();
    triggers_.run();
  }
  void undo_wait() { awaited_.store(false, std::memory_order_relaxed); }

  // --- endpoint_deferred.cc
  template <typename Call>
  static bool is_later(const Call& call) {
    return (call.flags & FI_TRIGGER) != 0;
  }
  template <typename Call>
  ssize_t defer(const Call& call);
  static ssize_t check(const SendCall& call);
  static ssize_t check(const ReceiveCall& call);
  static ssize_t check(const MemoryCall& call);
  static ssize_t check(const AtomicCall& call);
  bool is_in_line(const Deferred& deferred) const;
  class OwnOutlets;
  Outlets outlets_for(const Deferred& deferred) const;

  // --- endpoint_send.cc
  ssize_t begin(const SendCall& call);
  Status start(const SendCall& call, PeerId peer, Operation& operation);
  bool is_announced(const SendCall& call) const;
  bool inject(const SendCall& call, PeerId peer);
  Status start_inject(const SendCall& call, PeerId peer, Operation& operation);
  Status start_copied(const SendCall& call, std::size_t length, PeerId peer, Operation& operation);
  ssize_t settle(Operation& operation, Status status);
  void meet_again(fi_addr_t number, PeerId gone);

  // --- endpoint_receive.cc
  ssize_t begin(const ReceiveCall& call);
  bool is_directed(const ReceiveCall& call) const;
  PeerId source_of(const ReceiveCall& call) const;
  ssize_t post(const ReceiveCall& call, PeerId source);
  void prepare(Operation& operation, const ReceiveCall& call) const;
  Status start(const ReceiveCall& call, PeerId source, Operation& operation);
  void refill();
  bool post_shared();

  // --- endpoint_look.cc
  ssize_t look(const ReceiveCall& call, PeerId source);
  ssize_t peek(const ReceiveCall& call, PeerId source);
  ssize_t take_claimed(const ReceiveCall& call);

  // --- endpoint_memory.cc
  ssize_t begin(const MemoryCall& call);
  Status put(const MemoryCall& call, PeerId peer, Operation& operation);
  Status get(const MemoryCall& call, PeerId peer, Operation& operation);
  void take_events();

  // --- endpoint_atomic.cc
  ssize_t begin(const AtomicCall& call);
  static bool is_complete(const AtomicCall& call, const Atomic& kind);
  Status start(const AtomicCall& call, Atomic atomic, PeerId peer, Operation& operation);

  // --- endpoint_completion.cc
  static void handle_done(Request& request);
  void complete(Operation& operation);
  void end(Operation& operation);
  void tell_copied(Operation& operation) const;
  void write(const Operation& operation) const;
  void use_shared(Operation& operation);
  Counter* counter_for(const SendCall&) const { return outlets_.send_counter; }
  Counter* counter_for(const ReceiveCall&) const { return outlets_.receive_counter; }
  Counter* counter_for(const MemoryCall& call) const {
    return call.writes ? outlets_.write_counter : outlets_.read_counter;
  }
  Counter* counter_for(const AtomicCall& call) const {
    return call.kind == AtomicKind::kWrite ? outlets_.write_counter : outlets_.read_counter;
  }
  // An operation that nobody waits for an answer of: an error entry.
  template <typename Call>
  void fail(const Call& call, Status why);

  EndpointHandle handle_;
  Domain& domain_;
  Triggers& triggers_;
  const std::uint64_t caps_;
  const bool is_reached_;  // peers may write here
  Place place_;
  std::unique_ptr<Context> context_;  // once enabled
  bool enabled_ = false;
  bool full_ = false;     // something due could not begin: nothing overtakes it
  bool closing_ = false;  // completions are of no use any more
  std::size_t aliases_ = 0;
  std::atomic<std::uint64_t> turns_ = 0;  // written under the lock
  std::atomic<bool> awaited_ = false;

  AddressVector* vector_ = nullptr;
  Outlets outlets_;
  UseCounters use_counters_;  // with FI_RMA_EVENT: of all that peers do
  // Without it, of writes with immediate data only, which complete in the queue: programs bind one
  // counter to all that comes in, and take its value for the number of those and of messages.
  Counter* told_counter_ = nullptr;
  RemoteUse counted_use_;
  std::vector<Counter*> counters_;  // all that are bound

  Peers peers_;
  OperationPool operations_{*this, kMostOperations};
  Request injected_;  // of sends that are done when the call returns
  SendCopies copies_;
  SharedBuffers shared_;
  std::unordered_map<void*, Probe> claimed_;  // by the context of the call that claimed it
};

}  // namespace pullman::ofi
