// The addresses of this host. To look here costs no system call: who hears the kernel tell of a
// change has them read again.
#pragma once

#include <vector>

#include "nic/address.h"

namespace pullman::nic {

class OwnAddresses {
 public:
  OwnAddresses() { read(); }
  void read();

  // Of any port, and of any scope: what is link-local is another's where the link is another.
  bool has(const Address& address) const;

 private:
  std::vector<Address> addresses_;  // port 0
};

}  // namespace pullman::nic
