#pragma once

#include "pullman/status.h"
#include "pullman/types.h"

namespace pullman::engine {

struct Connected {
  Status status = Status::kOk;
  PeerId peer;
};

}  // namespace pullman::engine
