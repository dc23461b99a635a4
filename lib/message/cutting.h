// How bytes of a message are cut into the chunks of a run. Where packets of one length are cheap
// they are of one length, as far as that costs few bytes more (docs/architecture.md). Pure.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire/frame.h"

namespace pullman::message {

// At most so many chunks of at most `full` bytes, of so many bytes; `equal`: of about one length.
wire::Cut cut_up(std::uint64_t bytes, std::size_t most, std::uint64_t full, bool equal);

// The last chunk is to be as long as the others, if it does not lack too much: then it begins
// before the one before it ends.
void lengthen_last(wire::Cut& cut);

}  // namespace pullman::message
