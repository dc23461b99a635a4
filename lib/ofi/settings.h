// The environment variables of the provider (FI_PULLMAN_*), which `fi_info -e` lists, and its own
// defaults where the library's do not fit.
#pragma once

#include <rdma/providers/fi_prov.h>

#include <chrono>

#include "pullman/config.h"

namespace pullman::ofi {

// Announces the variables to libfabric. Call it once, from fi_prov_ini().
void define_settings(const fi_provider& provider);

// Returns the configuration of an endpoint: the provider's defaults, overridden by PULLMAN_*,
// overridden by FI_PULLMAN_*. Throws Error(kBadOption).
Config read_settings();

// How long an application may make no progress before the progress thread takes over.
std::chrono::milliseconds read_patience();
inline constexpr std::chrono::milliseconds kAutomaticPatience(1);

// Whether threads that poll and find nothing give way to others that want the processor.
bool read_gives_way();

}  // namespace pullman::ofi
