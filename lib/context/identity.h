// What tells a context's engine from others: random numbers of its own, its host, its job's keys.
#pragma once

#include "engine/resources.h"
#include "pullman/config.h"

namespace pullman {

// `pairs` outlives the engine. Throws Error(kNoDevice) if the kernel gives no random bytes, and
// what find_job_keys() throws.
engine::Identity identity_of(const Config& config, shm::Pairs& pairs);

}  // namespace pullman
