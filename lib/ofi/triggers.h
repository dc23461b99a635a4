// Starts operations when a counter reaches a threshold (fi_trigger(3)): triggered operations of
// endpoints, and the deferred work of a domain. Under the domain's lock.
#pragma once

#include <rdma/fi_trigger.h>

#include <cstdint>
#include <list>
#include <map>
#include <variant>

#include "ofi/counter.h"
#include "ofi/limits.h"
#include "ofi/owned_call.h"
#include "pullman/status.h"

namespace pullman::ofi {

struct Deferred;
struct Lane;

using DeferredCall = std::variant<OwnedCall<SendCall>, OwnedCall<ReceiveCall>,
                                  OwnedCall<MemoryCall>, OwnedCall<AtomicCall>>;

// Starts deferred operations. Implemented by the endpoint that they were called on.
class DeferredTarget {
 public:
  // Starts an operation that is due. Returns true if it has begun, or has failed and reported that.
  // Returns false if it cannot begin now: none behind it may begin until try_again().
  virtual bool begin(const Deferred& deferred) = 0;
  // The blocked operation is in its place again, and begin() may be called once more.
  virtual void try_again() = 0;
  // Reports why the operation will never begin.
  virtual void drop(const Deferred& deferred, Status why) = 0;

 protected:
  ~DeferredTarget() = default;
};

struct DeferredOperation {
  DeferredTarget* target;
  DeferredCall call;
};

// FI_OP_CNTR_SET, FI_OP_CNTR_ADD.
struct CounterChange {
  Counter* counter;
  std::uint64_t value;
  Counter::How how;
};

struct Deferred {
  std::variant<DeferredOperation, CounterChange> what;
  const fi_deferred_work* work = nullptr;  // null: a triggered operation
  Counter* completion = nullptr;           // for work: the counter of its completion
};

// Returns the lane of an operation.
Lane* lane_of(const Deferred& deferred);

class Triggers {
 public:
  // What is compared with the threshold. For work failures count, too.
  enum class Counted { kSuccesses, kAll };

  // Adds an operation. If its threshold is reached already it begins with the next run(). Returns 0
  // or an error number.
  int add(Counter& counter, std::uint64_t threshold, Counted counted, Deferred&& deferred);
  // The counter has changed. May be called from inside a completion.
  void note(const Counter& counter);

  // Starts what is due, as far as possible; returns false if nothing began. Not from inside a
  // completion.
  bool run() { return !due_.empty() && run_due(); }

  // Takes back an operation that has not begun. Work then reports nothing; a triggered operation
  // completes as cancelled. Returns false if there is none.
  bool cancel(const fi_deferred_work& work);
  bool cancel(const Lane& lane, void* context);
  // Takes back all work, or all that waits for this counter.
  void flush(const Counter* counter);
  // Takes back all operations of an object that closes.
  void forget(const DeferredTarget& target);
  void forget(const Lane& lane);
  void forget(const Counter& counter);
  // Whether a deferred operation waits for the counter, changes it, or is counted by it.
  bool refers_to(const Counter& counter) const;

 private:
  // Lists of one operation, spliced from one to another, so that no later allocation can fail.
  using List = std::list<Deferred>;
  // The operations that wait for one counter, by threshold; those of one threshold in the order in
  // which they were added.
  using Waiting = std::multimap<std::uint64_t, List>;
  struct Thresholds {
    Waiting by_successes;
    Waiting by_all;
  };

  void take(Waiting& waiting, std::uint64_t reached);
  bool run_due();
  static bool begin(const Deferred& deferred);
  template <typename Matches>
  List remove(std::size_t most, Matches&& matches);

  std::map<const Counter*, Thresholds> thresholds_;
  List due_;
  std::size_t count_ = 0;  // operations that have not begun
};

}  // namespace pullman::ofi
