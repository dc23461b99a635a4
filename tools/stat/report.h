// Writes snapshots for people, as JSON, and for Prometheus' node exporter.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stat/source.h"

namespace stat_program {

// Returns the value as people read it: times as how long ago, nanoseconds as microseconds.
std::string to_text(const pullman::telemetry::Value& value,
                    const pullman::telemetry::SnapshotColumn& column, std::uint64_t at);

// Returns for how many seconds a context has slept on behind the time at which it was to wake; 0:
// it has not. Its process is stopped, or does something else in its own event loop.
double overdue(const pullman::telemetry::Snapshot& snapshot, std::uint64_t at);

// Returns a line for a context: which process, how it does, and for how many peers it waits.
std::string summary(const Shown& shown, std::uint64_t at);

// Returns a table with its names above; `names` chooses columns, all if it is empty. Columns in
// which nothing is but zeros are left out then.
std::vector<std::string> lines_of(const pullman::telemetry::SnapshotTable& table,
                                  const std::vector<std::string>& names, std::uint64_t at);

std::string to_json(const std::vector<Shown>& all, const std::vector<std::string>& problems,
                    std::uint64_t at);

// Returns the text of a node exporter's text-file collector (the exposition format of Prometheus,
// version 0.0.4).
std::string to_prometheus(const std::vector<Shown>& all, std::uint64_t at);

}  // namespace stat_program
