#include "job.h"

#include <algorithm>

namespace perf {

nlohmann::json to_json(const Job& job) {
  return {{"test", name(job.test)},
          {"size", job.size},
          {"window", job.window},
          {"check", job.check},
          {"run", job.run}};
}

Job to_job(const nlohmann::json& json) {
  Job job;
  try {
    job.test = test_named(json.at("test").get<std::string>());
    job.size = json.at("size").get<std::size_t>();
    job.window = json.at("window").get<std::size_t>();
    job.check = json.at("check").get<bool>();
    job.run = json.at("run").get<std::uint64_t>();
  } catch (const nlohmann::json::exception&) {
    throw Failure("the client: asked for something this version does not know");
  }
  if (job.size > kMaxMessageBytes || job.window == 0 || job.window > kMaxWindow) {
    throw Failure("the client: asked for a size or window out of range");
  }
  return job;
}

Job warm_up(Job job) {
  job.iterations = job.iterations == 0 ? 0 : std::max<std::uint64_t>(1, job.iterations / 10);
  job.duration /= 10;
  // Cuts come after it, and their times count from the measured run's begin.
  const std::chrono::nanoseconds most = std::chrono::seconds(1);
  if (job.test == Test::kFailover) job.duration = std::min(job.duration, most);
  job.warm_up = true;
  job.report = nullptr;
  return job;
}

}  // namespace perf
