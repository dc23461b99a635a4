// What a port has to know about its provider, read once from its fi_info: nothing else in the
// driver looks at modes, limits or provider names.
#pragma once

#include <rdma/fabric.h>

#include <cstddef>

namespace pullman::nic::fabric {

struct Facts {
  // Bytes the provider wants in front of what is sent, and in front of what is received
  // (FI_MSG_PREFIX is given per direction: usnic and efa both, verbs UD on receive only).
  std::size_t send_prefix = 0;
  std::size_t receive_prefix = 0;

  std::size_t payload_bytes = 0;  // largest datagram, without any prefix
  std::size_t send_depth = 0;     // sends that may be outstanding
  std::size_t receive_depth = 0;  // receives that may be posted

  // Buffers must be registered and their descriptors passed (FI_MR_LOCAL).
  bool local_registration = false;

  // The bytes have left our memory when fi_inject() returns, whatever their number up to
  // payload_bytes: the kernel copies them. True of "udp" only (a sendto inside each call).
  bool sends_at_once = false;

  // Address insertion is a table entry, done during the call: no event queue is needed.
  bool resolves_at_once = false;

  // Errored completions carry an ibv_wc_status.
  bool verbs_status = false;

  // A read of the completion queue yields one packet at most, at the price of a system call.
  bool one_per_read = false;
};

Facts facts_of(const fi_info& info);

}  // namespace pullman::nic::fabric
