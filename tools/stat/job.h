// Asks the processes of a job how they do, by one of them on this host, and shows what they say.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "stat/source.h"

namespace stat_program {

struct JobOptions {
  Source source;  // the folder, and the process of this host to ask first; none: any
  std::chrono::milliseconds patience{5000};
  bool json = false;
};

// Prints it. Returns the exit code: 0 if a process has answered.
int show_job(const JobOptions& options);

}  // namespace stat_program
