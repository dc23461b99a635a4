// A guest: the base class of whatever has a timer in a hotel (reliability/hotel.h).
#pragma once

#include <boost/intrusive/list_hook.hpp>
#include <cstdint>

#include "base/time.h"

namespace pullman {

// A guest is on at most one floor of one hotel.
struct Guest : boost::intrusive::list_base_hook<> {
  Instant due = kNever;    // when its timer expires
  std::uint8_t floor = 0;  // the floor it is on
  bool checked_in() const { return is_linked(); }
};

}  // namespace pullman
