// The name of this host, for people.
#pragma once

#include <limits.h>
#include <unistd.h>

#include <array>
#include <string>

namespace pullman {

// Empty: it has none that fits.
inline std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace pullman
