#include "launch/public_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/algorithm/hex.hpp>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace pullman::launch {
namespace {

// Open MPI's "transport key": 16 hexadecimal digits, a dash, 16 more. Under srun it is made of the
// job's and the step's number.
constexpr const char* kTransportKey = "OMPI_MCA_orte_precondition_transports";

constexpr const char* kVariables[] = {kTransportKey, "PMIX_NAMESPACE", "PMI_JOBID", "SLURM_JOB_ID",
                                      "SLURM_JOBID", "FLUX_JOB_ID",    "PBS_JOBID", "LSB_JOBID"};

using Bytes = std::vector<std::byte>;

bool contains(std::span<const std::byte> whole, const Bytes& part) {
  return !part.empty() &&
         std::search(whole.begin(), whole.end(), part.begin(), part.end()) != whole.end();
}

// Returns the numbers of a text that says them in hexadecimal digits, each with its first digits in
// the first byte; nothing if it says none.
Bytes numbers_in(std::string_view text) {
  std::string digits(text);
  std::erase(digits, '-');
  Bytes numbers;
  try {
    std::vector<unsigned char> out;
    boost::algorithm::unhex(digits.begin(), digits.end(), std::back_inserter(out));
    std::ranges::transform(out, std::back_inserter(numbers), [](auto c) { return std::byte(c); });
  } catch (const boost::algorithm::hex_decode_error&) {
  }
  return numbers;
}

// Returns the same with the bytes of each number of 8 in the order that this machine has them in.
Bytes turned(Bytes numbers) {
  constexpr std::size_t kNumber = 8;
  for (std::size_t at = 0; at + kNumber <= numbers.size(); at += kNumber) {
    std::reverse(numbers.begin() + static_cast<std::ptrdiff_t>(at),
                 numbers.begin() + static_cast<std::ptrdiff_t>(at + kNumber));
  }
  return numbers;
}

}  // namespace

const char* variable_that_tells(std::span<const std::byte> value) {
  std::span<const std::byte> unpadded = value;
  while (!unpadded.empty() && unpadded.back() == std::byte{0}) {
    unpadded = unpadded.first(unpadded.size() - 1);
  }
  for (const char* const variable : kVariables) {
    const char* const text = std::getenv(variable);
    if (text == nullptr || *text == '\0') continue;
    const std::string_view told(text);
    if (std::ranges::equal(unpadded, std::as_bytes(std::span(told)))) return variable;
    if (variable != kTransportKey) continue;
    const Bytes numbers = numbers_in(told);
    if (contains(value, numbers) || contains(value, turned(numbers))) return variable;
    const auto as_text = std::as_bytes(std::span(told));
    if (contains(value, Bytes(as_text.begin(), as_text.end()))) return variable;
  }
  return nullptr;
}

std::string why_no_secret(std::span<const std::byte> value) {
  const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
  if (std::ranges::all_of(value, is_zero)) return "is nothing but zeros";
  const char* const variable = variable_that_tells(value);
  if (variable == nullptr) return {};
  return fmt::format("is the value of {}, which can be guessed", variable);
}

}  // namespace pullman::launch
