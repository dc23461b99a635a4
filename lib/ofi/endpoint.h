// An endpoint: one pullman::Context, and where the completions of its operations go. Opens its NICs
// when it is enabled (or asked for its name). Everything under the domain's lock.
#pragma once

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "ofi/address.h"
#include "ofi/bounce_buffers.h"
#include "ofi/calls.h"
#include "ofi/lane.h"
#include "ofi/limits.h"
#include "ofi/memory_region.h"
#include "ofi/operation.h"
#include "ofi/peers.h"
#include "ofi/requested_address.h"
#include "ofi/triggers.h"
#include "pullman/context.h"

namespace pullman::ofi {

class AddressVector;
class CompletionQueue;
class Counter;
class Domain;
class Endpoint;
class SharedReceiveContext;
class SharedTransmitContext;

// What an application holds: an endpoint, a context of a scalable one, or an alias of either that
// has other default flags.
struct EndpointHandle : fid_ep {
  // Now or, with FI_TRIGGER, when its time has come.
  template <typename Call>
  ssize_t call(Call asked) const;

  Endpoint* endpoint = nullptr;
  Lane* lane = nullptr;          // of what is called with it
  std::uint64_t send_flags = 0;  // of calls that say none
  std::uint64_t receive_flags = 0;
};

class Endpoint {
 public:
  static int open(fid_domain* domain, fi_info* info, fid_ep** out, void* context);
  static int open_scalable(fid_domain* domain, fi_info* info, fid_ep** out, void* context);

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
  // Somebody sleeps, or may sleep, on that descriptor while others let packets move: it goes on
  // being watched whatever they do.
  void keep_watched() { keeps_watched_ = true; }

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
    const bool more = refill_due_;
    if (more) refill();
    const bool matched = shared_receive_ != nullptr && match_shared_receive(true);
    return !triggers_.run() && !more && !matched && nothing;
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
  int connect(fi_addr_t number, const Address& address);
  void forget(fi_addr_t number);

  // --- Under the lock, for the receives of several endpoints.

  // Takes the earliest message for it that has come here. False: there is none. `buffer`: of the
  // call, if it takes many.
  bool take(const ReceiveCall& call, MultiReceiveBuffer* buffer);
  // A message that no receive has matched; each once.
  std::optional<Probe> next_unexpected(Space space);
  bool fits(const ReceiveCall& call, const Probe& message) const;
  // Such a receive is not taken any more, or would wait for nobody.
  void refuse(ReceiveCall call, Status why) {
    call.lane = &own_;
    fail(call, why);
  }
  bool reports_receives() const { return own_.bindings.receive_queue != nullptr; }
  bool is_receiving(const void* context);
  // Of the peer that a receive names: there is such an address; how it is (kConnecting: it names
  // none); why it has gone, kOk if it has not.
  bool knows_source(const ReceiveCall& call) const;
  PeerState state_of_source(const ReceiveCall& call) const;
  Status why_gone(fi_addr_t number) const;
  void reconnect_if_gone(fi_addr_t number) { reconnect(number, peers_.peer(number)); }
  const AddressVector* vector() const { return vector_; }

  // --- The application's calls; they take the lock.

  template <typename Call>
  ssize_t call(const Call& asked);
  ssize_t cancel(Lane& lane, void* context);

  int bind(EndpointHandle& handle, fid& other, std::uint64_t flags);
  int enable(EndpointHandle& handle);
  // `handle`: the endpoint's own, a context's, or an alias's.
  int close(EndpointHandle& handle);
  // Of a scalable endpoint.
  int open_transmit(int index, fi_tx_attr* attributes, fid_ep** out, void* context);
  int open_receive(int index, fi_rx_attr* attributes, fid_ep** out, void* context);
  int make_alias(const EndpointHandle& original, struct fi_alias& wish);
  int get_name(void* out, std::size_t* length);
  int set_name(const void* address, std::size_t length);
  static int get_option(const Lane& lane, int name, void* out, std::size_t* length);
  int set_option(Lane& lane, int name, const void* value, std::size_t length);

 private:
  enum class Form { kPlain, kScalable };
  Endpoint(Domain& domain, const fi_info& info, Form form, void* context);
  ~Endpoint();

  // The NICs, the context and the peers; throws Error.
  void open_context();
  void close_context();
  static int open(Form form, fid_domain* domain, fi_info* info, fid_ep** out, void* context);

  // --- endpoint_binding.cc
  int bind_locked(EndpointHandle& handle, fid& other, std::uint64_t flags);
  int bind_vector(AddressVector& vector);
  int bind_queue(Lane& lane, CompletionQueue& queue, std::uint64_t flags);
  int bind_counter(Lane& lane, Counter& counter, std::uint64_t flags);
  int bind_transmit(SharedTransmitContext& shared);
  int bind_shared_receive(SharedReceiveContext& shared);
  bool is_fully_bound() const;
  std::vector<CompletionQueue*> queues();
  bool counts_into(const Counter& counter);

  // --- endpoint_lanes.cc
  // A context of a scalable endpoint.
  struct Side {
    EndpointHandle handle;
    Lane lane;
    bool open = false;
    bool closing = false;  // nothing but being closed again
  };
  using Sides = std::vector<std::unique_ptr<Side>>;
  template <typename Visit>
  void for_each_lane(Visit&& visit) {
    visit(own_);
    for (const Sides* sides : {&transmitters_, &receivers_}) {
      for (const auto& side : *sides) {
        if (side != nullptr) visit(side->lane);
      }
    }
  }
  Side* open_side(Sides& sides, int index, std::size_t fid_class, void* context);
  template <typename Attributes>
  int open_side(Sides& sides, int index, std::size_t fid_class, Attributes* attributes,
                std::uint64_t EndpointHandle::*flags, fid_ep** out, void* context);
  int close_side(Side& side);
  void withdraw(Lane& lane);
  void unbind(Lane& lane);
  bool is_idle(const Lane& lane);
  Side* side_of(const EndpointHandle& handle);
  bool any_side_open() const;
  bool match_shared_receive(bool thoroughly);

  // The application lets packets move. No read-modify-write: nobody else writes.
  void begin_turn() {
    turns_.store(turns() + 1, std::memory_order_relaxed);
    note_call();
  }
  void progress_by(std::size_t (Context::*turn)()) {
    begin_turn();
    if (!context_) return;
    if (keeps_watched_ && turns() % kTurnsPerWatch == 0) wait_descriptor();
    const bool news = (*context_.*turn)() != 0 || refill_due_;
    if (refill_due_) refill();
    if (shared_receive_ != nullptr) {
      const bool thoroughly = turns() % kTurnsPerCare == 0;
      if (news || thoroughly) match_shared_receive(thoroughly);
    }
    if (is_reached_) take_events();
    triggers_.run();
  }
  void note_call() { awaited_.store(false, std::memory_order_relaxed); }

  // --- endpoint_deferred.cc
  template <typename Call>
  static bool is_later(const Call& call) {
    return (call.flags & FI_TRIGGER) != 0;
  }
  template <typename Call>
  static bool is_enabled(const Call& call) {
    return std::is_same_v<Call, ReceiveCall> ? call.lane->receives : call.lane->sends;
  }
  template <typename Call>
  ssize_t defer(const Call& call);
  static ssize_t check(const SendCall& call);
  static ssize_t check(const ReceiveCall& call);
  static ssize_t check(const MemoryCall& call);
  static ssize_t check(const AtomicCall& call);
  bool is_in_line(const Deferred& deferred) const;
  class ScopedBindings;
  static CompletionBindings bindings_for(const Deferred& deferred);

  // --- endpoint_send.cc
  ssize_t begin(const SendCall& call);
  Status start(const SendCall& call, PeerId peer, Operation& operation);
  static bool reports_success(const SendCall& call);
  SendOptions options_for(const SendCall& call) const;
  bool inject(const SendCall& call, PeerId peer);
  Status start_inject(const SendCall& call, PeerId peer, Operation& operation);
  Status start_copied(const SendCall& call, std::size_t length, PeerId peer, Operation& operation);
  ssize_t settle(Operation& operation, Status status);
  void reconnect(fi_addr_t number, PeerId gone);

  // --- endpoint_receive.cc
  ssize_t begin(const ReceiveCall& call);
  bool is_directed(const ReceiveCall& call) const;
  PeerId source_of(const ReceiveCall& call) const;
  // It names one that there is not, or not any more.
  bool lacks_its_source(const ReceiveCall& call, PeerId source) const {
    return source == kAnyPeer && is_directed(call);
  }
  ssize_t post(const ReceiveCall& call, PeerId source);
  static void prepare(Operation& operation, const ReceiveCall& call);
  Status start(const ReceiveCall& call, PeerId source, Operation& operation);
  Status receive_claimed(const Claimed& claimed, const ReceiveCall& call, Operation& operation);
  void refill();
  void refill(Lane& lane);
  bool post_waiting(const ReceiveCall& call);
  bool post_shared(Lane& lane);

  // --- endpoint_look.cc
  ssize_t peek_or_claim(const ReceiveCall& call, PeerId source);
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
  const CompletionBindings* bindings_for_events() const;
  static Counter* counter_for(const SendCall& call) { return call.lane->bindings.send_counter; }
  static Counter* counter_for(const ReceiveCall& call) {
    return call.lane->bindings.receive_counter;
  }
  static Counter* counter_for(const MemoryCall& call) {
    const CompletionBindings& bindings = call.lane->bindings;
    return call.writes ? bindings.write_counter : bindings.read_counter;
  }
  static Counter* counter_for(const AtomicCall& call) {
    const CompletionBindings& bindings = call.lane->bindings;
    return call.kind == AtomicKind::kWrite ? bindings.write_counter : bindings.read_counter;
  }
  // An operation that nobody waits for an answer of: an error entry.
  template <typename Call>
  void fail(const Call& call, Status why);

  EndpointHandle handle_;
  Lane own_;            // of a scalable endpoint: nothing goes through it
  Sides transmitters_;  // by index; they stay until it is closed
  Sides receivers_;
  Domain& domain_;
  Triggers& triggers_;
  const std::uint64_t caps_;
  const bool is_reached_;  // peers may write here
  // So often shared receives are looked after without any packet.
  static constexpr std::uint64_t kTurnsPerCare = 1024;
  // So often the context is asked for its descriptor, which is what keeps it watched: it forgets
  // after more turns.
  static constexpr std::uint64_t kTurnsPerWatch = 256;

  RequestedAddress requested_address_;
  std::unique_ptr<Context> context_;  // once enabled
  bool full_ = false;                 // something due could not begin: nothing overtakes it
  bool closing_ = false;              // completions are of no use any more
  bool keeps_watched_ = false;
  int watched_descriptor_ = -1;  // for who has not the lock; once enabled
  bool refill_due_ = false;      // of a multi-receive buffer, its own or of several endpoints
  std::atomic<std::uint64_t> turns_ = 0;  // written under the lock
  std::atomic<bool> awaited_ = false;

  std::chrono::nanoseconds close_timeout_{0};  // once enabled

  AddressVector* vector_ = nullptr;
  const bool shares_transmit_;  // it is to be bound to a context that others share
  const bool shares_receive_;
  SharedTransmitContext* transmit_ = nullptr;
  SharedReceiveContext* shared_receive_ = nullptr;
  RemoteAccessCounters remote_access_counters_;  // with FI_RMA_EVENT: of all that peers do
  // Without it, of writes with immediate data only, which complete in the queue: programs bind one
  // counter to all that comes in, and take its value for the number of those and of messages.
  Counter* immediate_counter_ = nullptr;
  RemoteUse counted_use_;
  std::vector<Counter*> counters_;  // all that are bound

  Peers peers_;
  OperationPool operations_{*this, kMaxOperations};
  Request injected_;  // of sends that are done when the call returns
  BounceBuffers copies_;
};

template <typename Call>
ssize_t EndpointHandle::call(Call asked) const {
  asked.lane = lane;
  return endpoint->call(asked);
}

}  // namespace pullman::ofi
