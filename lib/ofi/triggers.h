// What begins when a counter reaches a threshold (fi_trigger(3)): triggered operations of
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

// Starts deferred operations: the endpoint that they were called on.
class DeferredTarget {
 public:
  // The operation is due. True: it has begun, or has failed and reported that. False: it cannot
  // begin now, and none behind it may until try_again().
  virtual bool begin(const Deferred& deferred) = 0;
  // What could not begin is in its place again, and begin() may be called once more.
  virtual void try_again() = 0;
  // The operation never begins, and reports why.
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
  Counter* completion = nullptr;           // of work: counts its completion
};

// The lane of an operation.
Lane* lane_of(const Deferred& deferred);

class Triggers {
 public:
  // What is compared with the threshold; for work failures count, too.
  enum class Counted { kSuccesses, kAll };

  // An operation whose threshold is reached already begins with the next run(). Returns 0 or an
  // error number.
  int add(Counter& counter, std::uint64_t threshold, Counted counted, Deferred&& deferred);
  // The counter has changed. Also from inside a completion.
  void note(const Counter& counter);

  // Begins what is due, as far as it can; false: nothing began. Not from inside a completion.
  bool run() { return !due_.empty() && run_due(); }

  // Takes back one that has not begun. Work reports nothing then; a triggered operation completes
  // as cancelled. False: there is none.
  bool cancel(const fi_deferred_work& work);
  bool cancel(const Lane& lane, void* context);
  // All work, or that which waits for this counter.
  void flush(const Counter* counter);
  // Takes back all of an object that closes.
  void forget(const DeferredTarget& target);
  void forget(const Lane& lane);
  void forget(const Counter& counter);
  // Whether a deferred operation waits for the counter, changes it, or is counted by it.
  bool refers_to(const Counter& counter) const;

 private:
  // Lists of one operation are spliced, because no allocation may fail later.
  using List = std::list<Deferred>;
  // The operations of one counter by threshold; those of one threshold as they were added.
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
