// Values that a launcher tells every process, which look like keys and are none: others know them,
// or can guess them from the number of the job.
#pragma once

#include <cstddef>
#include <span>

namespace pullman::launch {

// Returns the name of the environment variable with that value, as text or as the numbers that it
// says; nullptr if there is none. Zeros behind it, which fill up a key, do not count.
const char* variable_that_tells(std::span<const std::byte> value);

}  // namespace pullman::launch
