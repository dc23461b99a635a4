// What tells a context's engine from others: random numbers of its own, its host, its job's keys.
#pragma once

#include "context/security.h"
#include "engine/resources.h"

namespace pullman {

// `pairs` outlives the engine. Throws Error(kNoDevice) if the kernel gives no random bytes.
engine::Identity identity_of(const Secured& secured, shm::Pairs& pairs);

}  // namespace pullman
