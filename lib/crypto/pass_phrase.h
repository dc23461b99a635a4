// Makes a key of words that people can remember: scrypt (RFC 7914), which takes a tenth of a second
// and 32 MiB, so that words cannot be guessed by the billion.
#pragma once

#include <string_view>

#include "crypto/secret.h"

namespace pullman::crypto {

// Returns the same key wherever the words are the same. Ends the process if there is no memory.
Secret<32> key_from(std::string_view words);

}  // namespace pullman::crypto
