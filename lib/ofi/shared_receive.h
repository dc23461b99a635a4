// A shared receive context (fi_srx_context()): receives for the messages of several endpoints. Each
// endpoint's Pullman context matches separately, so these receives are posted to none of them:
// every message is unexpected there. Each message is offered once to the waiting receives, and each
// new receive is matched once with the messages that came before it. So the eager part of a message
// is copied once more than with receives of the endpoint itself. Under the domain's lock.
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

  // The endpoints that share it. Under the lock.
  void add(SharedReceiver& endpoint) { members_.push_back(&endpoint); }
  // The endpoint has closed: none of its messages will arrive any more.
  void remove(const SharedReceiver& endpoint) noexcept;
  // Whether an fi_addr_t means the same peer to all endpoints.
  bool has_one_address_vector() const;
  // What to do with receives from a peer that has gone; searching for them is slow.
  enum class Orphans { kKeep, kFail };
  // Matches messages that have arrived; returns true if there were any.
  bool match(Orphans orphans);
  void note_used_up() override { used_up_elsewhere_ = true; }

  // --- Called by the application.
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

  enum class Taken { kNothing, kOne, kLast };  // kLast: the receive is used up and was removed

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
  std::uint64_t flags_;  // for calls without flags
  std::size_t min_room_ = 64;
  std::vector<SharedReceiver*> members_;
  std::array<Queue, 2> queues_;  // by space, in the order they were posted
  bool rescan_due_ = false;      // a message was not taken although a receive fits it
  // A buffer in the queues is used up elsewhere. The queues may be long, and are searched only
  // then.
  bool used_up_elsewhere_ = false;
  Queue leaving_;  // used-up buffers with messages still on their way
};

}  // namespace pullman::ofi
