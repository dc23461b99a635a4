#include "sim/memory.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>

namespace pullman::sim {

struct SharedMemory::Block {
  std::string name;
  std::set<std::uint32_t> processes;
  alignas(shm::kLineBytes) std::array<std::byte, shm::Pair::kBytes> bytes{};
};

namespace {

// One process's view of a block.
class View : public shm::Memory {
 public:
  View(SharedMemory& memory, std::shared_ptr<SharedMemory::Block> block, std::uint32_t process,
       const MemoryFaults& faults)
      : memory_(memory), block_(std::move(block)), process_(process), faults_(faults) {}

  ~View() override {
    if (watching_) memory_.unwatch(*watching_);
  }
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  std::span<std::byte> bytes() const override { return block_->bytes; }
  const std::string& name() const override { return block_->name; }
  void forget_name() override {}

  shm::Told own() const override {
    return {.ids = 1, .process = {.id = static_cast<pid_t>(process_), .started = 1}, .word = {}};
  }
  void meet(const shm::Told& other) override {
    other_ = static_cast<std::uint32_t>(other.process.id);
    const bool polled = faults_.polled != 0 && memory_.happens(faults_.polled);
    watching_ = memory_.watch(process_, *other_, polled);
  }
  bool can_read() const override { return is_there() && !memory_.happens(faults_.testing); }
  bool read(std::uint64_t address, std::span<std::byte> into) const override {
    if (!is_there() || memory_.happens(faults_.reading)) {
      if (watching_) memory_.poll(*watching_);
      return false;
    }
    std::memcpy(into.data(), std::bit_cast<const std::byte*>(address), into.size());
    return true;
  }
  bool is_alive() const override { return !watching_ || !memory_.knows_end(*watching_); }

 private:
  bool is_there() const { return !other_ || memory_.is_alive(*other_); }

  SharedMemory& memory_;
  const std::shared_ptr<SharedMemory::Block> block_;
  const std::uint32_t process_;
  const MemoryFaults faults_;
  std::optional<std::uint32_t> other_;
  std::optional<std::uint64_t> watching_;
};

}  // namespace

std::unique_ptr<shm::Memory> SharedMemory::create(std::uint32_t process,
                                                  const MemoryFaults& faults) {
  if (happens(faults.creating)) throw shm::MemoryError("the plan lets none be had");
  auto block = std::make_shared<Block>();
  block->name = "pullman.sim." + std::to_string(made_++);
  block->processes = {process};
  named_[block->name] = block;
  blocks_.push_back(block);
  return std::make_unique<View>(*this, block, process, faults);
}

std::unique_ptr<shm::Memory> SharedMemory::join(std::uint32_t process, std::string_view name,
                                                const MemoryFaults& faults) {
  const auto found = named_.find(name);
  if (found == named_.end() || happens(faults.joining)) {
    throw shm::MemoryError("the plan lets it not be joined");
  }
  found->second->processes.insert(process);
  auto view = std::make_unique<View>(*this, found->second, process, faults);
  named_.erase(found);
  return view;
}

SharedMemory::Kept SharedMemory::copy_of(std::uint32_t process) const {
  Kept kept;
  for (const auto& one : blocks_) {
    const auto block = one.lock();
    if (block == nullptr || !block->processes.contains(process)) continue;
    kept.emplace_back(block, std::vector(block->bytes.begin(), block->bytes.end()));
  }
  return kept;
}

void SharedMemory::restore(const Kept& kept) {
  for (const auto& [block, bytes] : kept)
    std::copy(bytes.begin(), bytes.end(), block->bytes.begin());
}

std::uint64_t SharedMemory::watch(std::uint32_t process, std::uint32_t other, bool polled) {
  watched_.push_back({.number = watchings_, .process = process, .other = other, .polled = polled});
  return watchings_++;
}

void SharedMemory::unwatch(std::uint64_t watching) {
  watched_.remove_if([&](const Watching& one) { return one.number == watching; });
}

bool SharedMemory::knows_end(std::uint64_t watching) const {
  return std::any_of(watched_.begin(), watched_.end(),
                     [&](const Watching& one) { return one.number == watching && is_known(one); });
}

void SharedMemory::poll(std::uint64_t watching) {
  for (Watching& one : watched_) {
    if (one.number == watching) poll(one);
  }
}

bool SharedMemory::knows_any_end(std::uint32_t process) const {
  return std::any_of(watched_.begin(), watched_.end(),
                     [&](const Watching& one) { return one.process == process && is_known(one); });
}

std::size_t SharedMemory::polled_by(std::uint32_t process) const {
  return static_cast<std::size_t>(
      std::count_if(watched_.begin(), watched_.end(),
                    [&](const Watching& one) { return one.process == process && one.polled; }));
}

void SharedMemory::poll_next(std::uint32_t process, std::size_t count) {
  for (count = std::min(count, polled_by(process)); count > 0; --count) {
    const auto next = std::find_if(watched_.begin(), watched_.end(), [&](const Watching& one) {
      return one.process == process && one.polled;
    });
    poll(*next);
    watched_.splice(watched_.end(), watched_, next);
  }
}

void SharedMemory::corrupt(std::uint32_t process) {
  for (const auto& one : blocks_) {
    const auto block = one.lock();
    if (block == nullptr || !block->processes.contains(process)) continue;
    // Both ends' rings: behind what each end says, and how far its reader has come.
    for (const std::size_t end : {std::size_t{0}, shm::Pair::kBytes / 2}) {
      const std::size_t begin = end + 2 * shm::kLineBytes;
      std::fill_n(block->bytes.begin() + static_cast<std::ptrdiff_t>(begin), shm::Pair::kCapacity,
                  std::byte{0x5a});
    }
  }
}

shm::Pair SimPairs::create(const shm::Secret&) {
  return {memory_.create(process_, faults_), true};
}

shm::Pair SimPairs::join(std::string_view name, const shm::Secret&) {
  return {memory_.join(process_, name, faults_), false};
}

}  // namespace pullman::sim
