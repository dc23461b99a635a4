// The bytes of a card or letter.
#pragma once

#include <cstddef>
#include <vector>

namespace pullman::world {

using Bytes = std::vector<std::byte>;

}  // namespace pullman::world
