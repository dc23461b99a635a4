// Values that look like keys and are no secret: zeros, and what a launcher tells every process,
// which others know, or can guess from the number of the job.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace pullman::launch {

// Returns the name of the environment variable with that value, as text or as the numbers that it
// says; nullptr if there is none. Zeros behind it, which fill up a key, do not count.
const char* variable_that_tells(std::span<const std::byte> value);

// Returns why the value is no secret, to be said behind its name; nothing if it may be one.
std::string why_no_secret(std::span<const std::byte> value);

}  // namespace pullman::launch
