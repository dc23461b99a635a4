#include "key_options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

namespace perf {

void KeyOptions::add_to(CLI::App& app, CLI::Option* other) {
  auto* const words = app.add_option(
      "--key", key,
      "words of your choice, the same at both ends, that the key is made of (PULLMAN_KEY)");
  auto* const mode =
      app.add_option("--security", security,
                     "authenticate, encrypt or off, the same at both ends (PULLMAN_SECURITY)")
          ->check(CLI::IsMember({"authenticate", "encrypt", "off"}));
  if (other == nullptr) return;
  words->excludes(other);
  mode->excludes(other);
}

void KeyOptions::apply() const {
  if (!key.empty()) {
    unsetenv("PULLMAN_KEY_FILE");
    setenv("PULLMAN_KEY", key.c_str(), 1);
  }
  if (!security.empty()) setenv("PULLMAN_SECURITY", security.c_str(), 1);
}

}  // namespace perf
