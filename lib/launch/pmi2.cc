#include "launch/pmi2.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>

#include "launch/hex_value.h"
#include "launch/pmi_process.h"
#include "launch/shared_library.h"

namespace pullman::launch {
namespace {

constexpr const char* kPmi2Library = "libpmi2.so.0";

// The part of the interface that is used, as Slurm's <slurm/pmi2.h> and MPICH's <pmi2.h> have it
// ("PMI v2 API", Argonne National Laboratory). 0 means success; the unused pointers may be null.
struct Pmi2Api {
  int (*initialized)() = nullptr;
  int (*init)(int* spawned, int* size, int* rank, int* application) = nullptr;
  int (*finalize)() = nullptr;
  int (*job_id)(char* out, int bytes) = nullptr;
  int (*rank)(int* out) = nullptr;
  int (*size)(int* out) = nullptr;
  int (*put)(const char* key, const char* value) = nullptr;
  int (*fence)() = nullptr;
  int (*get)(const char* job, int from, const char* key, char* value, int bytes,
             int* length) = nullptr;
};

// Returns whether somebody else in this process, such as an MPI library, has begun a conversation
// by the same library.
bool is_in_use() {
  void* const loaded = dlopen(kPmi2Library, RTLD_NOW | RTLD_NOLOAD);
  if (loaded == nullptr) return false;
  const auto initialized = reinterpret_cast<int (*)()>(dlsym(loaded, "PMI2_Initialized"));
  const bool in_use = initialized != nullptr && initialized() != 0;
  dlclose(loaded);
  return in_use;
}

std::optional<Pmi2Api> load_pmi2() {
  const SharedLibrary library(kPmi2Library);
  Pmi2Api api;
  const bool all =
      library.find("PMI2_Initialized", api.initialized) && library.find("PMI2_Init", api.init) &&
      library.find("PMI2_Finalize", api.finalize) && library.find("PMI2_Job_GetId", api.job_id) &&
      library.find("PMI2_Job_GetRank", api.rank) && library.find("PMI2_Info_GetSize", api.size) &&
      library.find("PMI2_KVS_Put", api.put) && library.find("PMI2_KVS_Fence", api.fence) &&
      library.find("PMI2_KVS_Get", api.get);
  return all ? std::optional(api) : std::nullopt;
}

// A thread of this process is in a call that it has given up: nothing more can be said.
std::atomic<bool> stuck = false;

// A conversation cannot be begun a second time, so one that we have begun goes on until the process
// ends. A launcher takes an end without a word for a crash.
bool begin_once(const Pmi2Api& api) {
  static const Pmi2Api* begun = nullptr;
  if (begun != nullptr || api.initialized() != 0) return true;
  int spawned = 0;
  int size = 0;
  int rank = 0;
  int application = 0;
  if (api.init(&spawned, &size, &rank, &application) != 0) return false;
  begun = &api;
  at_exit_of_this_process([] {
    if (begun->initialized() != 0 && !stuck) begun->finalize();
  });
  return true;
}

// Makes calls that wait for all processes of the job, and have no time limit of their own. Returns
// false if they fail, or `patience` is over before: then a thread of this process stays in them, so
// what `calls` refers to must last.
bool finish_within(std::chrono::seconds patience, std::function<bool()> calls) {
  if (stuck) return false;
  auto finished = std::make_shared<std::promise<bool>>();
  std::future<bool> result = finished->get_future();
  std::thread([finished, calls = std::move(calls)] { finished->set_value(calls()); }).detach();
  if (result.wait_for(patience) == std::future_status::ready) return result.get();
  stuck = true;
  return false;
}

class Pmi2Launcher final : public Launcher {
 public:
  Pmi2Launcher(const Pmi2Api& api, unsigned rank, unsigned size, std::string job)
      : api_(api), rank_(rank), size_(size), job_(std::move(job)) {}

  const char* name() const override { return "PMI-2"; }
  unsigned rank() const override { return rank_; }
  unsigned size() const override { return size_; }
  bool is_spawned() const override { return is_spawned_by_pmi(); }
  bool may_ask_again() const override { return false; }

  bool put(const std::string& name, std::span<const std::byte> value) override {
    HexValue hex;
    const std::lock_guard locked(mutex_);
    return hex.write(value) && api_.put(key_of(name, rank_).c_str(), hex.c_str()) == 0;
  }

  bool share(std::chrono::seconds patience) override {
    const std::lock_guard locked(mutex_);
    return finish_within(patience, [fence = api_.fence] { return fence() == 0; });
  }

  // Nothing can be asked for before all have shared it, nor of another job. Where the launcher does
  // not wait for all processes in the fence it does so when it is asked for what was put before.
  std::optional<std::size_t> get(Job job, unsigned rank, const std::string& name,
                                 std::chrono::seconds patience, std::span<std::byte> out) override {
    if (job == Job::kParent || patience.count() == 0) return std::nullopt;
    const auto value = std::make_shared<HexValue>();
    const auto call = [get = api_.get, job = job_, key = key_of(name, rank), rank, value] {
      int length = 0;
      return get(job.c_str(), static_cast<int>(rank), key.c_str(), value->text().data(),
                 static_cast<int>(value->text().size()), &length) == 0;
    };
    const std::lock_guard locked(mutex_);
    return finish_within(patience, call) ? value->read(out) : std::nullopt;
  }

 private:
  // Names are common to all processes of a job.
  static std::string key_of(const std::string& name, unsigned rank) {
    return fmt::format("{}.{}", name, rank);
  }

  const Pmi2Api& api_;
  const unsigned rank_;
  const unsigned size_;
  const std::string job_;
  std::mutex mutex_;
};

}  // namespace

Found begin_pmi2() {
  // Flux speaks PMI-1 only, and takes the first words of the other for an error.
  if (std::getenv("FLUX_JOB_ID") != nullptr) return {};
  if (has_mpi() && !is_in_use()) {
    return {nullptr, "PMI-2: only the MPI library may talk to the launcher"};
  }
  static const std::optional<Pmi2Api> api = load_pmi2();
  if (!api) return {};
  static Pmi2Launcher* const begun = []() -> Pmi2Launcher* {
    std::array<char, 256> job{};
    int rank = 0;
    int size = 0;
    if (!begin_once(*api) || api->rank(&rank) != 0 || api->size(&size) != 0 ||
        api->job_id(job.data(), job.size()) != 0) {
      return nullptr;
    }
    static Pmi2Launcher launcher(*api, static_cast<unsigned>(rank), static_cast<unsigned>(size),
                                 job.data());
    return &launcher;
  }();
  if (begun == nullptr)
    return {nullptr, "PMI-2: the launcher does not answer, or speaks only PMI-1"};
  return {begun, ""};
}

}  // namespace pullman::launch
