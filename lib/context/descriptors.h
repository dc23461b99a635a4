// The limit of descriptors of the process (ulimit -n).
#pragma once

namespace pullman {

// Throws Error(kNoDevice) if the process may open fewer than a context needs at least. What fails
// for lack of them further on would say less clearly why.
void require_descriptors();

}  // namespace pullman
