#include "shm/pairs.h"

#include <memory>

#include "shm/process.h"
#include "shm/process_memory.h"

namespace pullman::shm {
namespace {

class SegmentMemory : public Memory {
 public:
  SegmentMemory(Segment segment, ProcessWatch& watch)
      : segment_(std::move(segment)), watch_(watch) {}

  std::span<std::byte> bytes() const override { return segment_.bytes(); }
  const std::string& name() const override { return segment_.name(); }
  void forget_name() override { segment_.unlink(); }

  Told own() const override {
    return {.ids = process_namespace(), .process = this_process(), .word = own_word()};
  }
  // Of a process in another namespace of ids nothing is known but what it writes.
  void meet(const Told& other) override {
    if (other.ids != process_namespace()) return;
    other_ = other;
    watched_ = ProcessWatch::Watched(watch_, other.process);
  }
  bool can_read() const override { return shm::can_read(other_.process.id, other_.word); }
  // Cannot be read any more where the process has ended, above all.
  bool read(std::uint64_t address, std::span<std::byte> into) const override {
    if (read_memory(other_.process.id, address, into)) return true;
    watched_.poll();
    return false;
  }
  bool is_alive() const override { return watched_.runs(); }

 private:
  Segment segment_;
  ProcessWatch& watch_;
  Told other_;
  ProcessWatch::Watched watched_;
};

}  // namespace

Pair SegmentPairs::create(const Secret& secret) {
  auto segment = Segment::create(Pair::kBytes, secret, folder_);
  return {std::make_unique<SegmentMemory>(std::move(segment), watch_), true};
}

Pair SegmentPairs::join(std::string_view name, const Secret& secret) {
  auto segment = Segment::open(name, Pair::kBytes, secret, folder_);
  return {std::make_unique<SegmentMemory>(std::move(segment), watch_), false};
}

}  // namespace pullman::shm
