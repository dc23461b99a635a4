// How processes find each other through rank 0, whose address they know: each sends it its card,
// and gets those of all. They may start in any order, rank 0 last.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "world/card.h"
#include "world/mail.h"
#include "world/place.h"

namespace pullman::world {

struct Met {
  std::vector<Addresses> cards;  // of all, by rank
  std::vector<PeerId> peers;     // those that are connected by now, by rank
};

// As rank 0. Throws Error if processes have not come within the patience, or do not fit together;
// those that have come are told why.
Met meet_as_first(Mail& mail, Place place, std::span<const std::byte> card);

// As any other. `connect` calls rank 0; it is called again if rank 0 has not answered.
Met meet_at_first(Mail& mail, Place place, std::span<const std::byte> card,
                  const std::function<PeerId()>& connect,
                  const std::function<void(PeerId)>& forget);

}  // namespace pullman::world
