// The key of a job that its launcher knows: the job's first process draws it, the others ask for
// it.
//
// It is as safe as the launcher: its daemons know the key, and may tell it each other in clear.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "crypto/secret.h"
#include "launch/launcher.h"

namespace pullman::launch {

struct JobKey {
  std::optional<crypto::Secret<32>> key;
  std::string source;     // of the key, for people
  std::string problem;    // why there is none although there seems to be a launcher
  bool expected = false;  // there is a launcher, so other processes of the job may have a key
};

// Waits for at most `patience` until rank 0 has drawn the key, which it does when it asks for it
// itself. A job that was spawned has the key of the job that spawned it.
JobKey key_of_job(Launcher& launcher, std::chrono::seconds patience);

// The same for the job of this process, which is asked for once. Any thread may call it.
JobKey key_of_own_job();

}  // namespace pullman::launch
