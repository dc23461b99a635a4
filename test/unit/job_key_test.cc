// The key of a job that its launcher knows.
#include "launch/job_key.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

namespace pullman::launch {
namespace {

using std::chrono::seconds;
using Values = std::map<std::string, std::vector<std::byte>>;

// What the launcher knows of a job, and of the one that spawned it.
struct LaunchedJob {
  Values values;
  LaunchedJob* parent = nullptr;
  bool takes_values = true;
  int shared = 0;  // how often processes have called share()
};

class FakeLauncher final : public Launcher {
 public:
  FakeLauncher(LaunchedJob& job, unsigned rank) : job_(job), rank_(rank) {}

  const char* name() const override { return "fake"; }
  unsigned rank() const override { return rank_; }
  unsigned size() const override { return 78; }
  bool is_spawned() const override { return job_.parent != nullptr; }
  bool put(const std::string& name, std::span<const std::byte> value) override {
    CHECK(rank_ == 0);
    if (job_.takes_values) job_.values[name].assign(value.begin(), value.end());
    return job_.takes_values;
  }
  bool share(seconds patience) override {
    CHECK(patience > seconds(0));
    ++job_.shared;
    return true;
  }
  bool may_ask_again() const override { return true; }
  std::optional<std::size_t> get(Job which, unsigned rank, const std::string& name,
                                 seconds patience, std::span<std::byte> out) override {
    CHECK(rank == 0);
    CHECK((patience > seconds(0) || rank_ == 0));
    const Values& values = which == Job::kOwn ? job_.values : job_.parent->values;
    const auto found = values.find(name);
    if (found == values.end() || found->second.size() > out.size()) return std::nullopt;
    std::ranges::copy(found->second, out.begin());
    return found->second.size();
  }

 private:
  LaunchedJob& job_;
  const unsigned rank_;
};

JobKey key_of(LaunchedJob& job, unsigned rank) {
  FakeLauncher launcher(job, rank);
  return key_of_job(launcher, seconds(1));
}

}  // namespace

TEST_CASE("the first process of a job draws its key, and the others have the same") {
  LaunchedJob job;
  const JobKey first = key_of(job, 0);
  REQUIRE(first.key);
  CHECK(first.source == "fake");
  for (const unsigned rank : {1U, 2U, 77U}) CHECK(key_of(job, rank).key == first.key);
}

// Some launchers wait until all have called it, equally often.
TEST_CASE("each process shares once, whether there is a key or not") {
  LaunchedJob job;
  key_of(job, 0);
  CHECK(job.shared == 1);
  key_of(job, 1);
  CHECK(job.shared == 2);
}

TEST_CASE("the first process keeps the key that it, or another copy of it, has drawn") {
  LaunchedJob job;
  const JobKey first = key_of(job, 0);
  CHECK(key_of(job, 0).key == first.key);
  CHECK(key_of(job, 1).key == first.key);
}

TEST_CASE("each job has a key of its own") {
  LaunchedJob one;
  LaunchedJob other;
  CHECK_FALSE(key_of(one, 0).key == key_of(other, 0).key);
}

TEST_CASE("a job that was spawned has the key of the job that spawned it, and so have its own") {
  LaunchedJob first;
  LaunchedJob child{.values = {}, .parent = &first};
  LaunchedJob grandchild{.values = {}, .parent = &child};
  const JobKey key = key_of(first, 0);
  CHECK(key_of(child, 0).key == key.key);
  CHECK(key_of(child, 3).key == key.key);
  CHECK(key_of(grandchild, 0).key == key.key);
  CHECK(key_of(grandchild, 1).key == key.key);
}

TEST_CASE("a key that nobody draws is missed with the reason") {
  LaunchedJob job;
  const JobKey missed = key_of(job, 1);
  CHECK_FALSE(missed.key);
  CHECK(missed.problem == "fake: rank 0 has drawn no key within 1 s");
}

TEST_CASE("a job that was spawned draws no key if its parent has none") {
  LaunchedJob first;
  LaunchedJob child{.values = {}, .parent = &first};
  const JobKey missed = key_of(child, 0);
  CHECK_FALSE(missed.key);
  CHECK(missed.problem == "fake: the job that spawned this one has no key there");
  CHECK(child.values.empty());
  CHECK(child.shared == 1);
}

TEST_CASE("a key that the others cannot get is used by nobody") {
  LaunchedJob job{.values = {}, .parent = nullptr, .takes_values = false};
  const JobKey lone = key_of(job, 0);
  CHECK_FALSE(lone.key);
  CHECK(lone.problem == "fake: it takes no key");
  CHECK(job.shared == 1);
}

}  // namespace pullman::launch
