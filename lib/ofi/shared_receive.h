// A shared receive context (fi_srx_context()): receives that whichever of several endpoints takes a
// message with. Each endpoint's context matches for itself, so none of these is posted there: what
// comes is unexpected, and each message is offered, once, to the receives that wait; each receive
// looks, once, at what has come before it. So a message's eager part is copied once more than on an
// endpoint of its own. Under the domain's lock.
#pragma once

#include <rdma/fi_endpoint.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <vector>

#include "ofi/calls.h"
#include "ofi/endpoint/multi_receive.h"
#include "ofi/owned_call.h"
#include "pullman/status.h"

namespace pullman::ofi {

class Domain;
class SharedReceiver;

class SharedReceiveContext final : public fid_ep, public MultiReceiveOwner {
 public:
  static int open(fid_domain* domain, fi_rx_attr* attributes, fid_ep** out, void* context);
  ~SharedReceiveContext();

  static SharedReceiveContext& from(fid_ep* handle) {
    return static_cast<SharedReceiveContext&>(*handle);
  }

  Domain& domain() const { return domain_; }

  // Endpoints whose messages it receives. Under the lock.
  void add(SharedReceiver& endpoint) { members_.push_back(&endpoint); }
  // It has closed: none of its messages is on its way any more.
  void remove(const SharedReceiver& endpoint) noexcept;
  // An fi_addr_t means the same to all.
  bool has_one_address_vector() const;
  // What becomes of receives from a peer that has gone: to look for them takes a while.
  enum class Orphans { kKeep, kFail };
  // Receives what has come; true if there was anything.
  bool match(Orphans orphans);
  void note_used_up() override { used_up_elsewhere_ = true; }

  // What the application calls.
  ssize_t receive(const ReceiveCall& call);
  int cancel(void* context);
  std::uint64_t flags() const { return flags_; }
  void set_flags(std::uint64_t flags) { flags_ = flags; }
  std::size_t min_room();
  void set_min_room(std::size_t bytes);
  int close();

 private:
  struct Waiting {
    explicit Waiting(const ReceiveCall& call) : owned(call) {}
    const ReceiveCall& call() const { return owned.call(); }
    bool is_used_up() const { return buffer && buffer->used_up; }

    OwnedCall<ReceiveCall> owned;
    std::optional<MultiReceiveBuffer> buffer;  // of a multi-receive
  };
  using Queue = std::list<Waiting>;
  using Position = Queue::iterator;

  enum class Taken { kNothing, kOne, kLast };  // with the last one the position is gone

  SharedReceiveContext(Domain& domain, std::uint64_t flags, void* context);
  bool match(Space space, SharedReceiver& endpoint);
  void match_unexpected(Queue& queue, Position one);
  Taken take(SharedReceiver& endpoint, Queue& queue, Position one);
  void rescan();
  void sweep();
  void take_out_used_up();
  void fail_orphaned_receives(Queue& queue);
  bool is_orphaned(const ReceiveCall& call) const;
  Status why_gone(fi_addr_t number) const;
  void withdraw(Queue& queue, Position one, Status why);
  void report_failure(const ReceiveCall& call, Status why) const;
  Queue& queue_of(Space space) { return queues_[static_cast<std::size_t>(space)]; }

  Domain& domain_;
  std::uint64_t flags_;  // of calls that say none
  std::size_t min_room_ = 64;
  std::vector<SharedReceiver*> members_;
  std::array<Queue, 2> queues_;  // by space, in the order they were posted
  bool rescan_due_ = false;      // a message was not taken, though a receive fits it
  // A buffer in the queues is used up. They may be long, and are searched only then.
  bool used_up_elsewhere_ = false;
  Queue leaving_;  // buffers that are used up, while messages are on their way into them
};

}  // namespace pullman::ofi
