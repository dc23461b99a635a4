// What --cut asks for: which of our NICs is cut, how, when, and when it is mended.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace perf {

enum class CutKind : std::uint8_t {
  kLink,    // the interface is taken down: everybody is told
  kSilent,  // what comes and what leaves vanishes
  kDeaf,    // what comes vanishes
  kMute,    // what leaves vanishes
};

const char* name(CutKind kind);

struct Cut {
  std::string nic;  // an interface's name
  CutKind kind = CutKind::kLink;
  std::chrono::nanoseconds at{0};  // since the stream began
  std::optional<std::chrono::nanoseconds> mended_at;
};

// "NIC@A[-B]" or "NIC:KIND@A[-B]", in seconds. Throws Failure.
Cut parse_cut(std::string_view text);

// In order of time. Throws Failure if a NIC is cut while it is cut.
std::vector<Cut> parse_cuts(const std::vector<std::string>& texts);

}  // namespace perf
