// The memory that simulated processes on one host share: heap memory, which goes wrong as a plan
// says, and which a process that dies leaves as it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "shm/pairs.h"

namespace pullman::sim {

// Chances in millionths.
struct MemoryFaults {
  std::uint64_t creating = 0;  // that none can be had
  std::uint64_t joining = 0;   // that it cannot be joined
  std::uint64_t testing = 0;   // that a process finds it cannot read another's memory
  std::uint64_t reading = 0;   // that it cannot do so any more, each time it does
  std::uint64_t polled = 0;    // that a process is told of another's end only if it asks
};

class SharedMemory {
 public:
  explicit SharedMemory(std::uint64_t seed) : random_(seed) {}

  struct Block;
  // A process has begun, or is gone; what it had told of itself is void then.
  void add_process(std::uint32_t process) { living_.insert(process); }
  void remove_process(std::uint32_t process) { living_.erase(process); }
  bool is_alive(std::uint32_t process) const { return living_.contains(process); }
  // From now on a process watches another, and knows of its end at once, or once it has polled.
  // Returns a number for the other calls.
  std::uint64_t watch(std::uint32_t process, std::uint32_t other, bool polled);
  void unwatch(std::uint64_t watching);
  bool knows_end(std::uint64_t watching) const;
  void poll(std::uint64_t watching);
  bool knows_any_end(std::uint32_t process) const;
  std::size_t polled_by(std::uint32_t process) const;
  void poll_next(std::uint32_t process, std::size_t count);

  // Runs `end`, which ends a process, so that its blocks are as if it had been killed before.
  template <typename End>
  void keep_as_they_are(std::uint32_t process, End end) {
    const auto kept = copy_of(process);
    end();
    restore(kept);
  }
  // Overwrites the rings of what the process shares, as a bug in another would.
  void corrupt(std::uint32_t process);

  std::unique_ptr<shm::Memory> create(std::uint32_t process, const MemoryFaults& faults);
  std::unique_ptr<shm::Memory> join(std::uint32_t process, std::string_view name,
                                    const MemoryFaults& faults);
  bool happens(std::uint64_t chance) { return random_.below(1'000'000) < chance; }

 private:
  struct Watching {
    std::uint64_t number;
    std::uint32_t process;
    std::uint32_t other;
    bool polled;
    bool ended = false;  // as it was when polled
  };
  bool is_known(const Watching& one) const { return one.polled ? one.ended : !is_alive(one.other); }
  void poll(Watching& one) const { one.ended = one.ended || !is_alive(one.other); }

  using Kept = std::vector<std::pair<std::shared_ptr<Block>, std::vector<std::byte>>>;
  Kept copy_of(std::uint32_t process) const;
  static void restore(const Kept& kept);

  Random random_;
  std::set<std::uint32_t> living_;
  std::list<Watching> watched_;  // of those that are polled, the longest unpolled first
  std::uint64_t watchings_ = 0;
  std::map<std::string, std::shared_ptr<Block>, std::less<>> named_;
  std::vector<std::weak_ptr<Block>> blocks_;
  std::uint64_t made_ = 0;
};

// Pairs of one process.
class SimPairs : public shm::Pairs {
 public:
  SimPairs(SharedMemory& memory, std::uint32_t process, const MemoryFaults& faults)
      : memory_(memory), process_(process), faults_(faults) {}
  shm::Pair create(const shm::Secret& secret) override;
  shm::Pair join(std::string_view name, const shm::Secret& secret) override;
  bool any_ended() const override { return memory_.knows_any_end(process_); }
  std::size_t polled() const override { return memory_.polled_by(process_); }
  void poll_next(std::size_t count) override { memory_.poll_next(process_, count); }

 private:
  SharedMemory& memory_;
  const std::uint32_t process_;
  const MemoryFaults faults_;
};

}  // namespace pullman::sim
