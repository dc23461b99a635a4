// What has started the processes of a job, as far as it passes values between them (pmix.h, pmi2.h,
// pmi1.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace pullman::launch {

// One process' conversation with its launcher. It cannot be begun twice, so it goes on until the
// process ends. Any thread may use it. Every call may take as long as a message to the
// launcher and back.
class Launcher {
 public:
  Launcher() = default;
  virtual ~Launcher() = default;
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  // Returns its name, for people.
  virtual const char* name() const = 0;
  // Returns the number of this process in its job, and how many there are.
  virtual unsigned rank() const = 0;
  virtual unsigned size() const = 0;
  // Returns true if a process of another job had the launcher start this job (MPI_Comm_spawn).
  virtual bool is_spawned() const = 0;

  // The longest value that every launcher takes.
  static constexpr std::size_t kMaxValueBytes = 480;

  // Stores a value of this process under a name, once, for all processes of this job and of the
  // jobs that it spawns. They have it after share(). Returns false if the launcher does not take
  // it.
  virtual bool put(const std::string& name, std::span<const std::byte> value) = 0;

  // Shares what has been put. All processes of the job must call it, equally often: some launchers
  // wait for all of them. Returns false if it fails, or `patience` is over before.
  virtual bool share(std::chrono::seconds patience) = 0;

  // Returns true if get() that has found nothing may be called again.
  virtual bool may_ask_again() const = 0;

  enum class Job { kOwn, kParent };
  // Fills the beginning of `out` with the value that a process has put, or will have before
  // `patience` is over, and returns its length. With none, only what is there already counts.
  // Returns nothing if there is none, or it is longer.
  virtual std::optional<std::size_t> get(Job job, unsigned rank, const std::string& name,
                                         std::chrono::seconds patience,
                                         std::span<std::byte> out) = 0;
};

struct Found {
  Launcher* launcher = nullptr;
  std::string problem;  // why a launcher that seems to be there cannot be talked to
};

// Looks for the launcher of this process: PMIx, then PMI-2, then PMI-1. None is needed on a
// machine: the libraries of the first two are loaded if the environment says that a launcher speaks
// them. The same launcher is returned again and again.
Found find_launcher();

}  // namespace pullman::launch
