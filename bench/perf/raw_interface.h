// The interface a raw measurement uses.
#pragma once

#include <cstddef>
#include <string>

namespace perf {

struct RawInterface {
  std::string name;
  std::string host;     // its IPv4 address, else its IPv6 address
  std::size_t mtu = 0;  // of the interface

  // The largest UDP payload that is not cut up on the way.
  std::size_t datagram_bytes() const;
};

// From its name or one of its addresses. Throws Failure.
RawInterface find_raw_interface(const std::string& name_or_host);

}  // namespace perf
