#include "launch/job_key.h"

#include <fmt/format.h>

#include <utility>

#include "crypto/random.h"

namespace pullman::launch {
namespace {

constexpr const char* kName = "pullman.key";
constexpr std::chrono::seconds kPatience(30);

JobKey missed(std::string problem) {
  return {.key = std::nullopt, .source = "", .problem = std::move(problem), .expected = true};
}

}  // namespace

JobKey key_of_job(Launcher& launcher, std::chrono::seconds patience) {
  using Job = Launcher::Job;
  const std::string by = launcher.name();
  crypto::Secret<32> key;
  const auto get = [&](Job job, std::chrono::seconds limit) {
    return launcher.get(job, 0, kName, limit, key.bytes()) == key.bytes().size();
  };
  if (launcher.rank() != 0) {
    if (launcher.share(patience) && get(Job::kOwn, patience)) return {key, by, "", true};
    return missed(fmt::format("{}: rank 0 has drawn no key within {} s", by, patience.count()));
  }
  // Another copy of this library in this process, as the provider has one, may have drawn it.
  if (get(Job::kOwn, std::chrono::seconds(0))) return {key, by, "", true};
  std::string problem;
  if (launcher.is_spawned()) {
    if (!get(Job::kParent, patience)) problem = "the job that spawned this one has no key there";
  } else if (!crypto::fill_randomly(key.bytes())) {
    problem = "the kernel gives no random bytes";
  }
  if (problem.empty() && !launcher.put(kName, key.bytes())) problem = "it takes no key";
  // The others wait for it, whatever there is to share.
  if (!launcher.share(patience) && problem.empty()) {
    problem = fmt::format("not all processes ask for the key within {} s", patience.count());
  }
  if (!problem.empty()) return missed(fmt::format("{}: {}", by, problem));
  return {key, by, "", true};
}

JobKey key_of_own_job() {
  static const JobKey known = [] {
    const Found found = find_launcher();
    return found.launcher == nullptr
               ? JobKey{.key = std::nullopt, .source = "", .problem = found.problem}
               : key_of_job(*found.launcher, kPatience);
  }();
  return known;
}

}  // namespace pullman::launch
