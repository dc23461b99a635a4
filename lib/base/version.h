// The version of the library. lib/meson.build holds it against the project's.
#pragma once

#include <string_view>

namespace pullman {

inline constexpr std::string_view kLibraryVersion = "0.2.0";

}  // namespace pullman
