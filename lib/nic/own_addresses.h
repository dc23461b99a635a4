// The addresses of this host. A lookup makes no system call: read() is called when the kernel
// reports a change.
#pragma once

#include <vector>

#include "nic/address.h"

namespace pullman::nic {

class OwnAddresses {
 public:
  OwnAddresses() { read(); }
  void read();

  // Ignores the port and the scope, except that link-local addresses of other links are not ours.
  bool has(const Address& address) const;

 private:
  std::vector<Address> addresses_;  // port 0
};

}  // namespace pullman::nic
