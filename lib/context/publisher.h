// Shows what a context does to other processes, in a file (telemetry/file.h): now and then in a
// turn, so that it costs a program at most a hundredth of its time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "engine/collector.h"
#include "pullman/config.h"
#include "telemetry/file.h"
#include "telemetry/history.h"

namespace pullman {

class Publisher {
 public:
  // If the file cannot be made in the folder that Config::counters names, nothing is shown: that is
  // no reason not to work. `driver` is that of the NICs.
  Publisher(const Config& config, std::string_view driver);

  // Notes a turn, behind which the rows are written if that is due.
  void note_turn(Instant now, const engine::Collector& collector) {
    if (!file_) return;
    file_->note_turn(now);
    if (now >= due_) [[unlikely]]
      publish(now, collector);
  }
  // Notes that the program sleeps until there is something to do: what it did before is shown.
  // It makes a turn at `until` in any case.
  void note_sleep(Instant now, Instant until, const engine::Collector& collector) {
    if (!file_) return;
    if (now >= due_before_sleep_) publish(now, collector);
    file_->note_sleep(now, until);
  }

  // Returns what is so now, shown or not, until the next call.
  const telemetry::Rows& look(Instant now, const engine::Collector& collector);
  // Returns where it is shown; empty: nowhere.
  std::filesystem::path path() const { return file_ ? file_->path() : std::filesystem::path(); }

  // The context is closed, and shows nothing any more.
  void end() { file_.reset(); }

 private:
  void publish(Instant now, const engine::Collector& collector);
  void list_warnings();

  std::optional<telemetry::File> file_;
  telemetry::Rows rows_;
  telemetry::History history_;
  unsigned times_ = 0;  // that rows were written
  Instant due_{};
  Instant due_before_sleep_{};
};

}  // namespace pullman
