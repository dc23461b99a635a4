// The provider whose behaviour the stand-in shows: PULLMAN_STANDIN is usnic (the default), verbs or
// efa. Read at every fi_getinfo().
#pragma once

#include <rdma/fabric.h>

#include <cstddef>
#include <cstdint>

namespace pullman::standin {

struct Variant {
  const char* name;
  std::size_t send_prefix;     // bytes in front of a sent packet
  std::size_t receive_prefix;  // bytes in front of a received one
  std::size_t payload_bytes;   // largest datagram
  std::size_t max_msg_size;    // as reported in fi_info
  std::size_t inject_bytes;
  std::size_t queue_depth;
  int mr_mode;  // besides FI_MR_LOCAL
};

// Returns the variant that the environment names.
const Variant& chosen_variant();
// Returns the variant of an endpoint, by its domain's name.
const Variant& variant_of(const fi_info& info);

// Returns the fi_info of the variant's only NIC; null without memory.
fi_info* describe(const Variant& variant);

}  // namespace pullman::standin
