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
#include "ofi/kept_call.h"
#include "ofi/shared_buffers.h"
#include "pullman/status.h"

namespace pullman::ofi {

class Domain;
class Endpoint;

class ReceivePool : public fid_ep {
 public:
  static int open(fid_domain* domain, fi_rx_attr* attributes, fid_ep** out, void* context);
  ~ReceivePool();

  static ReceivePool& from(fid_ep* handle) { return static_cast<ReceivePool&>(*handle); }

  Domain& domain() const { return domain_; }

  // Endpoints whose messages it receives. Under the lock.
  void add(Endpoint& endpoint) { members_.push_back(&endpoint); }
  // It has closed: nothing of its is on its way any more.
  void remove(const Endpoint& endpoint) noexcept;
  // An fi_addr_t means the same to all.
  bool is_of_one_vector() const;
  // A member has used up a buffer of these.
  void note_used_up() { used_up_elsewhere_ = true; }
  // Receives what has come; true if there was any. `thoroughly`: looks for receives that wait for
  // nobody, too.
  bool match(bool thoroughly);

  // What the application calls.
  ssize_t receive(const ReceiveCall& call);
  int cancel(void* context);
  std::uint64_t flags() const { return flags_; }
  void set_flags(std::uint64_t flags) { flags_ = flags; }
  std::size_t least_room();
  void set_least_room(std::size_t bytes);
  int close();

 private:
  struct Waiting {
    explicit Waiting(const ReceiveCall& call) : kept(call) {}
    const ReceiveCall& call() const { return kept.call(); }
    bool is_used_up() const { return buffer && buffer->used_up; }

    Kept<ReceiveCall> kept;
    std::optional<SharedBuffer> buffer;  // of a receive of many messages
  };
  using Line = std::list<Waiting>;
  using Place = Line::iterator;

  enum class Taken { kNothing, kOne, kLast };  // with the last one the place is gone

  ReceivePool(Domain& domain, std::uint64_t flags, void* context);
  bool match(Space space, Endpoint& endpoint);
  void serve(Line& line, Place one);
  Taken take(Endpoint& endpoint, Line& line, Place one);
  void look_again();
  void sweep();
  void take_out_used_up();
  void fail_orphaned_receives(Line& line);
  bool is_of_nobody(const ReceiveCall& call) const;
  Status why_gone(fi_addr_t number) const;
  void withdraw(Line& line, Place one, Status why);
  void refuse(const ReceiveCall& call, Status why) const;
  Line& line_of(Space space) { return lines_[static_cast<std::size_t>(space)]; }

  Domain& domain_;
  std::uint64_t flags_;  // of calls that say none
  std::size_t least_room_ = 64;
  std::vector<Endpoint*> members_;
  std::array<Line, 2> lines_;  // by space, in the order they were posted
  bool rescan_ = false;        // something new was not taken, though a receive fits it
  // A buffer in the lines is used up. They may be long, and are looked through only then.
  bool used_up_elsewhere_ = false;
  Line leaving_;  // buffers that are used up, while messages are on their way into them
};

}  // namespace pullman::ofi
