// What a port needs to know of its provider, read once from its fi_info: nothing else in the driver
// looks at modes, limits or provider names.
#pragma once

#include <rdma/fabric.h>

#include <cstddef>

namespace pullman::nic::fabric {

struct Facts {
  // Bytes that the provider wants in front of packets sent, and of packets received (FI_MSG_PREFIX
  // is given per direction: usnic and efa both, verbs UD on receive only).
  std::size_t send_prefix = 0;
  std::size_t receive_prefix = 0;

  std::size_t payload_bytes = 0;  // largest datagram, without any prefix
  std::size_t send_depth = 0;     // sends that may be outstanding
  std::size_t receive_depth = 0;  // receives that may be posted

  // Buffers must be registered and their descriptors passed (FI_MR_LOCAL).
  bool local_registration = false;

  // fi_inject() has copied the bytes when it returns, for up to payload_bytes of them: the kernel
  // copies. True of "udp" only (a sendto inside each call).
  bool sends_at_once = false;

  // An address is inserted into a table during the call: no event queue is needed.
  bool resolves_at_once = false;

  // Errored completions carry an ibv_wc_status.
  bool verbs_status = false;

  // A read of the completion queue yields at most one packet, and costs a system call.
  bool one_per_read = false;
};

Facts facts_of(const fi_info& info);

}  // namespace pullman::nic::fabric
