// A shared receive context (fi_srx_context()): receives that whichever of several endpoints takes a
// message with. Each endpoint's context matches for itself, so none of these is posted there: what
// comes is unexpected, and is claimed for the earliest of them that fits. So a short message is
// copied once more than on an endpoint of its own, and what nobody wants is looked through again
// with every packet that comes. Under the domain's lock.
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
  void remove(const Endpoint& endpoint);
  // Receives what has come and fits. True if there was any.
  bool match();

  // What the application calls.
  ssize_t receive(const ReceiveCall& call);
  int cancel(void* context);
  std::uint64_t flags() const { return flags_; }
  void set_flags(std::uint64_t flags) { flags_ = flags; }
  std::size_t least_room() const { return least_room_; }
  void set_least_room(std::size_t bytes);
  int close();

 private:
  struct Waiting {
    explicit Waiting(const ReceiveCall& call) : kept(call) {}
    const ReceiveCall& call() const { return kept.call(); }

    Kept<ReceiveCall> kept;
    std::optional<SharedBuffer> buffer;  // of a receive of many messages
  };
  struct Line {
    std::list<Waiting> waiting;  // in the order they were posted
    bool blocked = false;        // a message is on its way into a buffer, and the next may be its
  };

  ReceivePool(Domain& domain, std::uint64_t flags, void* context);
  bool match(Line& line);
  bool fill(SharedBuffer& buffer, bool& any);
  bool serve(const ReceiveCall& call, SharedBuffer* buffer);

  Domain& domain_;
  std::uint64_t flags_;  // of calls that say none
  std::size_t least_room_ = 64;
  std::vector<Endpoint*> members_;
  std::size_t turn_ = 0;       // whose it is to be asked first
  std::array<Line, 2> lines_;  // by space
};

}  // namespace pullman::ofi
