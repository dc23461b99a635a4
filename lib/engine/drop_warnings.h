// Tells people, once for each reason, that packets are dropped which a process of the job may have
// sent that is configured otherwise, or is of another version.
#pragma once

#include "wire/header.h"
#include "wire/verdict.h"

namespace pullman::engine {

// `own` is how this engine protects its packets.
void warn_of_drop(wire::Verdict why, wire::Protection own);

}  // namespace pullman::engine
