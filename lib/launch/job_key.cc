#include "launch/job_key.h"

#include <fmt/format.h>

#include "crypto/random.h"

namespace pullman::launch {
namespace {

constexpr const char* kName = "pullman.key";
constexpr std::chrono::seconds kPatience(30);

}  // namespace

JobKey key_of_job(Launcher& launcher, std::chrono::seconds patience) {
  using Job = Launcher::Job;
  const std::string by = launcher.name();
  crypto::Secret<32> key;
  if (launcher.rank() != 0) {
    if (launcher.get(Job::kOwn, kName, patience, key.bytes())) return {key, by, ""};
    return {std::nullopt, "",
            fmt::format("{}: rank 0 has drawn no key within {} s", by, patience.count())};
  }
  // Another copy of this library in this process, as the provider has one, may have drawn it.
  if (launcher.get(Job::kOwn, kName, std::chrono::seconds(0), key.bytes())) return {key, by, ""};
  if (launcher.is_spawned()) {
    if (!launcher.get(Job::kParent, kName, patience, key.bytes())) {
      return {std::nullopt, "", by + ": the job that spawned this one has no key there"};
    }
  } else if (!crypto::fill_randomly(key.bytes())) {
    return {std::nullopt, "", "the kernel gives no random bytes"};
  }
  if (!launcher.put(kName, key.bytes(), patience)) {
    return {std::nullopt, "",
            fmt::format("{}: it takes no key, or not all processes ask for it within {} s", by,
                        patience.count())};
  }
  return {key, by, ""};
}

JobKey key_of_own_job() {
  static const JobKey known = [] {
    const Found found = find_launcher();
    return found.launcher == nullptr ? JobKey{std::nullopt, "", found.problem}
                                     : key_of_job(*found.launcher, kPatience);
  }();
  return known;
}

}  // namespace pullman::launch
