// Runs the cases with the stand-in provider within libfabric's reach: it lies next door in the
// build directory.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

int main(int argc, char** argv) {
  const auto own = std::filesystem::canonical("/proc/self/exe").parent_path();
  setenv("FI_PROVIDER_PATH", (own.parent_path() / "standin").c_str(), 1);
  return Catch::Session().run(argc, argv);
}
