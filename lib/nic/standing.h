// Whether an interface is one of the host's NICs, or something within the host: a bridge for
// containers, its ports, a tunnel. Pure: it is told everything.
#pragma once

#include <string>
#include <vector>

#include "nic/link_facts.h"
#include "nic/port.h"

namespace pullman::nic {

struct Judged {
  Standing standing = Standing::kPlain;
  std::string why;  // for people, as Device::nature
};

// Of the interface of that name among all of its namespace; one that is not there is plain.
Judged judge(const std::vector<LinkFacts>& links, const std::string& name);

}  // namespace pullman::nic
