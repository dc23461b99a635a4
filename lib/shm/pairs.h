// Where pairs come from: an engine asks for them, and does no I/O itself.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>
#include <utility>

#include "shm/pair.h"
#include "shm/process_watch.h"
#include "shm/segment.h"

namespace pullman::shm {

class Pairs {
 public:
  virtual ~Pairs() = default;
  // Both throw MemoryError.
  virtual Pair create(const Secret& secret) = 0;
  virtual Pair join(std::string_view name, const Secret& secret) = 0;
  // Returns whether a process that has a pair with this one, and was met, is known to have ended.
  virtual bool any_ended() const = 0;
  // Returns the number of such processes whose end is known only once they were polled.
  virtual std::size_t polled() const = 0;
  // Polls the next `count` of those, in turn.
  virtual void poll_next(std::size_t count) = 0;
};

// Pairs of segments (segment.h) in a folder. It outlives them.
class SegmentPairs : public Pairs {
 public:
  explicit SegmentPairs(std::filesystem::path folder = kFolder) : folder_(std::move(folder)) {}
  Pair create(const Secret& secret) override;
  Pair join(std::string_view name, const Secret& secret) override;
  bool any_ended() const override { return watch_.any_ended(); }
  std::size_t polled() const override { return watch_.polled(); }
  void poll_next(std::size_t count) override { watch_.poll_next(count); }
  // Returns a descriptor that is readable once a process has ended that is not polled; -1 if there
  // is none.
  int descriptor() const { return watch_.descriptor(); }

 private:
  std::filesystem::path folder_;
  ProcessWatch watch_;
};

}  // namespace pullman::shm
