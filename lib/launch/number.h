// Numbers that a launcher has put into the environment.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace pullman::launch {

// Returns nothing unless all of the text is one number, without a sign.
inline std::optional<unsigned> parse_number(std::string_view digits) {
  unsigned number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [at, error] = std::from_chars(digits.data(), end, number);
  return error == std::errc() && at == end ? std::optional(number) : std::nullopt;
}

}  // namespace pullman::launch
