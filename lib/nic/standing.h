// Judges whether an interface is one of the host's NICs, or internal to the host: a bridge for
// containers, its ports, a tunnel. Pure: everything is passed in.
#pragma once

#include <string>
#include <vector>

#include "nic/link_facts.h"
#include "nic/port.h"

namespace pullman::nic {

struct Judged {
  Standing standing = Standing::kPlain;
  std::string why;  // as text, for Device::nature
};

// Judges the interface of that name among all of its namespace; an unknown one is plain.
Judged judge(const std::vector<LinkFacts>& links, const std::string& name);

}  // namespace pullman::nic
