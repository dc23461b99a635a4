// The endpoint: two queues of work, and a kernel UDP socket on 127.0.0.1 in place of a wire.
//
// A posted send is read when it leaves, not when it is posted; a posted receive is filled when a
// packet arrives. A packet that arrives while no receive is posted is lost. What usnic does not
// check is not checked here either, but reported as a fault.
#pragma once

#include <netinet/in.h>
#include <rdma/fi_endpoint.h>

#include <cstddef>
#include <deque>
#include <vector>

#include "standin/variant.h"
#include "standin/world.h"

namespace pullman::standin {

struct AddressVector;
struct CompletionQueue;
struct Domain;

// A posted buffer.
struct Work {
  std::byte* bytes = nullptr;
  std::size_t length = 0;
  void* descriptor = nullptr;
  fi_addr_t to = 0;
  void* context = nullptr;
};

struct Endpoint : fid_ep {
  Endpoint(Domain& owner, const fi_info& info, void* user_context);
  ~Endpoint();

  int bind(fid_t other, std::uint64_t flags);
  int enable();
  sockaddr_in name() const;

  int post_send(const Work& work);
  // `more`: another receive follows at once, and the NIC is told only with the last one.
  int post_receive(const Work& work, bool more);
  int inject(const void* bytes, std::size_t length, fi_addr_t to);

  void transmit_posted();
  void deliver_arrived();

  bool sends_to(fi_addr_t to) const;
  bool uses(const void* descriptor) const;

  Domain& domain;
  const Variant& variant;
  sockaddr_in wanted{};
  std::size_t send_depth;
  std::size_t receive_depth;
  int socket = -1;
  bool enabled = false;
  AddressVector* vector = nullptr;
  CompletionQueue* send_completions = nullptr;
  CompletionQueue* receive_completions = nullptr;
  std::deque<Work> sends;
  std::deque<Work> receives;   // known to the NIC
  std::deque<Work> announced;  // posted with FI_MORE
  Counted counted;

 private:
  void transmit(const Work& work);
  void deliver(const std::byte* datagram, std::size_t length);
  bool to_itself(const sockaddr_in& to) const;

  std::vector<std::byte> arriving_;
};

int open_endpoint(fid_domain* domain, fi_info* info, fid_ep** out, void* context);

}  // namespace pullman::standin
