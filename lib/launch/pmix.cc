#include "launch/pmix.h"

#include <fmt/format.h>
#include <pmix.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>

#include "crypto/secret.h"
#include "launch/shared_library.h"

namespace pullman::launch {
namespace {

// The interface's major version, by which Debian and others name the library.
constexpr const char* kPmixLibrary = "libpmix.so.2";

// The functions of the library that are used.
struct PmixApi {
  decltype(&::PMIx_Init) init = nullptr;
  decltype(&::PMIx_Finalize) finalize = nullptr;
  decltype(&::PMIx_Put) put = nullptr;
  decltype(&::PMIx_Commit) commit = nullptr;
  decltype(&::PMIx_Get) get = nullptr;
};

// Returns nullptr if there is no such library, or it lacks a function.
const PmixApi* load_pmix() {
  static const auto loaded = []() -> std::optional<PmixApi> {
    const SharedLibrary library(kPmixLibrary);
    PmixApi api;
    const bool all = library.find("PMIx_Init", api.init) &&
                     library.find("PMIx_Finalize", api.finalize) &&
                     library.find("PMIx_Put", api.put) && library.find("PMIx_Commit", api.commit) &&
                     library.find("PMIx_Get", api.get);
    return all ? std::optional(api) : std::nullopt;
  }();
  return loaded ? &*loaded : nullptr;
}

// A value that PMIx_Get() has given, which is ours to free. It may be a key.
struct FreeValue {
  void operator()(pmix_value_t* value) const {
    if (value->type == PMIX_BYTE_OBJECT) {
      crypto::wipe({reinterpret_cast<std::byte*>(value->data.bo.bytes), value->data.bo.size});
      std::free(value->data.bo.bytes);
    } else if (value->type == PMIX_PROC) {
      std::free(value->data.proc);
    }
    std::free(value);
  }
};
using Value = std::unique_ptr<pmix_value_t, FreeValue>;

Value ask(const PmixApi& api, const pmix_proc_t& of, const char* name,
          std::span<const pmix_info_t> options) {
  pmix_value_t* value = nullptr;
  if (api.get(&of, name, options.data(), options.size(), &value) != PMIX_SUCCESS) return nullptr;
  return Value(value);
}

template <std::size_t Size>
void copy_text(char (&to)[Size], const char* text) {
  std::strncpy(to, text, Size - 1);
}

// Returns the first process of the job that had the launcher start this one, if one did. Open MPI 4
// tells it in a variable instead: "JOB.RANK:NUMBER".
std::optional<pmix_proc_t> find_parent(const PmixApi& api, const pmix_proc_t& self) {
  std::optional<pmix_proc_t> parent;
  if (const Value told = ask(api, self, PMIX_PARENT_ID, {}); told && told->type == PMIX_PROC) {
    parent = *told->data.proc;
  } else if (const char* const port = std::getenv("OMPI_PARENT_PORT")) {
    copy_text(parent.emplace().nspace, std::string(port, std::strcspn(port, ".")).c_str());
  }
  if (parent) parent->rank = 0;
  return parent;
}

// Returns 0 if the launcher does not say it.
unsigned size_of_job(const PmixApi& api, pmix_proc_t job) {
  job.rank = PMIX_RANK_WILDCARD;
  const Value told = ask(api, job, PMIX_JOB_SIZE, {});
  return told && told->type == PMIX_UINT32 ? told->data.uint32 : 0;
}

class PmixLauncher final : public Launcher {
 public:
  PmixLauncher(const PmixApi& api, const pmix_proc_t& self, unsigned size)
      : api_(api), self_(self), size_(size), parent_(find_parent(api, self)) {}

  const char* name() const override { return "PMIx"; }
  unsigned rank() const override { return self_.rank; }
  unsigned size() const override { return size_; }
  bool may_ask_again() const override { return true; }
  bool is_spawned() const override { return parent_.has_value(); }

  bool put(const std::string& name, std::span<const std::byte> bytes) override {
    pmix_value_t value{};
    value.type = PMIX_BYTE_OBJECT;
    value.data.bo.bytes = const_cast<char*>(reinterpret_cast<const char*>(bytes.data()));
    value.data.bo.size = bytes.size();
    return api_.put(PMIX_GLOBAL, name.c_str(), &value) == PMIX_SUCCESS;
  }

  // The others ask for it when they need it.
  bool share(std::chrono::seconds) override { return api_.commit() == PMIX_SUCCESS; }

  std::optional<std::size_t> get(Job job, unsigned rank, const std::string& name,
                                 std::chrono::seconds patience, std::span<std::byte> out) override {
    if (job == Job::kParent && !parent_) return std::nullopt;
    pmix_proc_t of = job == Job::kParent ? *parent_ : self_;
    of.rank = rank;
    const Value value =
        patience.count() == 0 ? ask_at_once(of, name) : wait_for(of, name, patience);
    if (value == nullptr || value->type != PMIX_BYTE_OBJECT || value->data.bo.size > out.size()) {
      return std::nullopt;
    }
    const std::size_t length = value->data.bo.size;
    std::copy_n(reinterpret_cast<const std::byte*>(value->data.bo.bytes), length, out.begin());
    return length;
  }

 private:
  Value ask_at_once(const pmix_proc_t& of, const std::string& name) const {
    pmix_info_t at_once{};
    copy_text(at_once.key, PMIX_IMMEDIATE);
    at_once.value.type = PMIX_BOOL;
    at_once.value.data.flag = true;
    return ask(api_, of, name.c_str(), {&at_once, 1});
  }

  // Asks again after an answer that came too early: a daemon may not know the job yet.
  Value wait_for(const pmix_proc_t& of, const std::string& name,
                 std::chrono::seconds patience) const {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::milliseconds kPause(20);
    const auto end = Clock::now() + patience;
    for (auto now = Clock::now(); now < end; now = Clock::now()) {
      pmix_info_t limit{};
      copy_text(limit.key, PMIX_TIMEOUT);
      limit.value.type = PMIX_INT;
      const auto left = std::chrono::ceil<std::chrono::seconds>(end - now);
      limit.value.data.integer = static_cast<int>(left.count());
      if (Value value = ask(api_, of, name.c_str(), {&limit, 1})) return value;
      std::this_thread::sleep_for(kPause);
    }
    return nullptr;
  }

  const PmixApi& api_;
  const pmix_proc_t self_;
  const unsigned size_;
  const std::optional<pmix_proc_t> parent_;
};

}  // namespace

bool speaks_pmix() {
  return std::getenv("PMIX_NAMESPACE") != nullptr && std::getenv("PMIX_RANK") != nullptr;
}

// MPI cannot begin in a process where PMIx has ended (Open MPI 4.1.4), so it goes on until the
// process ends. A launcher takes an end without a word for a crash.
Found begin_pmix() {
  const PmixApi* const api = load_pmix();
  if (api == nullptr) return {nullptr, fmt::format("PMIx: {} cannot be loaded", kPmixLibrary)};
  static pmix_proc_t self{};
  static const pmix_status_t status = [api] {
    const pmix_status_t begun = api->init(&self, nullptr, 0);
    if (begun == PMIX_SUCCESS) at_exit_of_this_process([] { load_pmix()->finalize(nullptr, 0); });
    return begun;
  }();
  if (status != PMIX_SUCCESS) {
    return {nullptr, fmt::format("PMIx: the launcher does not answer (error {})", status)};
  }
  static const unsigned size = size_of_job(*api, self);
  if (size == 0) return {nullptr, "PMIx: the launcher does not say how many processes there are"};
  static PmixLauncher launcher(*api, self, size);
  return {&launcher, ""};
}

}  // namespace pullman::launch
