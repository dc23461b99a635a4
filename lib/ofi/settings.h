// What users of libfabric may choose, by environment variables that `fi_info -e` lists
// (FI_PULLMAN_*), and what the provider chooses for them where a library's defaults do not fit.
#pragma once

#include <rdma/providers/fi_prov.h>

#include <chrono>

#include "pullman/config.h"

namespace pullman::ofi {

// Announces the variables. Once, from fi_prov_ini().
void define_settings(const fi_provider& provider);

// The configuration of an endpoint: the provider's defaults, then PULLMAN_*, then FI_PULLMAN_*.
// Throws Error(kBadOption).
Config read_settings();

// How long an application may make no progress before the progress thread takes its place.
std::chrono::milliseconds read_patience();
inline constexpr std::chrono::milliseconds kAutomaticPatience(1);

// Whether threads that poll and find nothing yield to other processes: for more ranks than
// processors.
bool read_yield_policy();

}  // namespace pullman::ofi
