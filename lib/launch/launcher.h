// What has started the processes of a job, as far as it passes values between them (pmix.h,
// pmi2.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace pullman::launch {

// One process' conversation with its launcher, which goes on until the process ends. One thread at
// a time may use it. Every call may take as long as a message to the launcher and back.
class Launcher {
 public:
  Launcher() = default;
  virtual ~Launcher() = default;
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  // Returns its name, for people.
  virtual const char* name() const = 0;
  // Returns the number of this process in its job.
  virtual unsigned rank() const = 0;
  // Returns true if a process of another job had the launcher start this job (MPI_Comm_spawn).
  virtual bool is_spawned() const = 0;

  // Stores a value under a name, for all processes of this job and of the jobs that it spawns.
  // Only rank 0 may, once. Returns false if the launcher does not take it, or needs all processes
  // to ask for it before `patience` is over, and they do not.
  virtual bool put(const std::string& name, std::span<const std::byte> value,
                   std::chrono::seconds patience) = 0;

  enum class Job { kOwn, kParent };
  // Fills `out` with the value of exactly that length which rank 0 of a job has stored, or will
  // have before `patience` is over. With none, only what is there already counts, and rank 0 may
  // ask for its own. Returns false if there is none.
  virtual bool get(Job job, const std::string& name, std::chrono::seconds patience,
                   std::span<std::byte> out) = 0;
};

struct Found {
  std::unique_ptr<Launcher> launcher;
  std::string problem;  // why a launcher that seems to be there cannot be talked to
};

// Looks for the launcher of this process: PMIx, then PMI-2. Neither is needed on a machine: their
// libraries are loaded if the environment says that a launcher speaks them.
Found find_launcher();

}  // namespace pullman::launch
