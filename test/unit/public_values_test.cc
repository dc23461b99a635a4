// Values that look like keys and are known to others.
#include "launch/public_values.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <string>
#include <string_view>

#include "variable.h"

namespace pullman::launch {
namespace {

constexpr const char* kTransports = "OMPI_MCA_orte_precondition_transports";
constexpr const char* kTold = "0123456789abcdef-fedcba9876543210";

std::string told(std::string_view value) {
  const char* const variable = variable_that_tells(std::as_bytes(std::span(value)));
  return variable == nullptr ? "" : variable;
}

}  // namespace

TEST_CASE("Open MPI's transport key is no secret, neither as text nor as numbers") {
  const Variable variable(kTransports, kTold);
  using namespace std::string_view_literals;
  CHECK(told(kTold) == kTransports);
  CHECK(told(std::string("my job: ") + kTold) == kTransports);
  CHECK(told("\x01\x23\x45\x67\x89\xab\xcd\xef\xfe\xdc\xba\x98\x76\x54\x32\x10"sv) == kTransports);
  CHECK(told("\xef\xcd\xab\x89\x67\x45\x23\x01\x10\x32\x54\x76\x98\xba\xdc\xfe"sv) == kTransports);
  CHECK(told("another key, which nobody has told").empty());
}

TEST_CASE("small numbers are no secret, although they end in zeros") {
  const Variable variable(kTransports, "0000000000001234-0000000000000001");
  using namespace std::string_view_literals;
  CHECK(told("\x34\x12\0\0\0\0\0\0\x01\0\0\0\0\0\0\0"sv) == kTransports);
  CHECK(told("\0\0\0\0\0\0\x12\x34\0\0\0\0\0\0\0\x01"sv) == kTransports);
}

TEST_CASE("the name of a job is no secret") {
  const Variable name("PMIX_NAMESPACE", "slurm.pmix.1234.0");
  const Variable number("SLURM_JOB_ID", "1234");
  CHECK(told("slurm.pmix.1234.0") == "PMIX_NAMESPACE");
  CHECK(told("1234") == "SLURM_JOB_ID");
  CHECK(told(std::string("1234").append(28, '\0')) == "SLURM_JOB_ID");
  CHECK(told("1234 words that are not told").empty());
}

TEST_CASE("a variable that is empty, or no hexadecimal number, tells nothing") {
  for (const char* const value : {"", "-", "no number", "0"}) {
    const Variable variable(kTransports, value);
    CAPTURE(value);
    CHECK(told("a key that nobody has told").empty());
  }
}

}  // namespace pullman::launch
