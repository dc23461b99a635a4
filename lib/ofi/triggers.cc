#include "ofi/triggers.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <utility>

#include "ofi/counter.h"

namespace pullman::ofi {
namespace {

const void* context_of(const DeferredCall& call) {
  return std::visit([](const auto& owned) -> const void* { return owned.call().context; }, call);
}

bool is_of(const Deferred& deferred, const DeferredTarget& target) {
  const auto* operation = std::get_if<DeferredOperation>(&deferred.what);
  return operation != nullptr && operation->target == &target;
}

bool is_of(const Deferred& deferred, const Lane& lane) {
  return std::holds_alternative<DeferredOperation>(deferred.what) && lane_of(deferred) == &lane;
}

bool uses(const Deferred& deferred, const Counter& counter) {
  const auto* change = std::get_if<CounterChange>(&deferred.what);
  return deferred.completion == &counter || (change != nullptr && change->counter == &counter);
}

}  // namespace

Lane* lane_of(const Deferred& deferred) {
  return std::visit([](const auto& owned) { return owned.call().lane; },
                    std::get<DeferredOperation>(deferred.what).call);
}

int Triggers::add(Counter& counter, std::uint64_t threshold, Counted counted, Deferred&& deferred) {
  if (count_ == kMaxOperations) return -FI_EAGAIN;
  Thresholds& found = thresholds_[&counter];
  Waiting& waiting = counted == Counted::kSuccesses ? found.by_successes : found.by_all;
  List one;
  one.push_back(std::move(deferred));
  waiting.emplace(threshold, std::move(one));
  ++count_;
  counter.set_watched();
  note(counter);
  return 0;
}

void Triggers::note(const Counter& counter) {
  const auto found = thresholds_.find(&counter);
  if (found == thresholds_.end()) return;
  take(found->second.by_successes, counter.successes());
  take(found->second.by_all, counter.successes() + counter.failures());
}

void Triggers::take(Waiting& waiting, std::uint64_t reached) {
  const auto end = waiting.upper_bound(reached);
  for (auto one = waiting.begin(); one != end; ++one) due_.splice(due_.end(), one->second);
  waiting.erase(waiting.begin(), end);
}

// An operation that begins may complete at once and make more due. One that cannot begin keeps its
// place, and so do all behind it of the same endpoint.
bool Triggers::run_due() {
  List held;
  bool began = false;
  while (!due_.empty()) {
    List next;
    next.splice(next.end(), due_, due_.begin());
    if (begin(next.front())) {
      began = true;
      --count_;
    } else {
      held.splice(held.end(), next);
    }
  }
  due_.swap(held);
  for (const Deferred& one : due_) std::get<DeferredOperation>(one.what).target->try_again();
  return began;
}

bool Triggers::begin(const Deferred& deferred) {
  if (const auto* operation = std::get_if<DeferredOperation>(&deferred.what)) {
    return operation->target->begin(deferred);
  }
  const auto& change = std::get<CounterChange>(deferred.what);
  change.counter->alter(Counter::Which::kSuccesses, change.value, change.how);
  return true;
}

// Removes the first `most` operations for which `matches` is true: those due first, then counter by
// counter.
template <typename Matches>
Triggers::List Triggers::remove(std::size_t most, Matches&& matches) {
  List removed;
  for (auto one = due_.begin(); one != due_.end() && removed.size() < most;) {
    const auto next = std::next(one);
    if (matches(*one, nullptr)) removed.splice(removed.end(), due_, one);
    one = next;
  }
  for (auto& [counter, found] : thresholds_) {
    for (Waiting* waiting : {&found.by_successes, &found.by_all}) {
      for (auto one = waiting->begin(); one != waiting->end() && removed.size() < most;) {
        const auto next = std::next(one);
        if (matches(one->second.front(), counter)) {
          removed.splice(removed.end(), one->second);
          waiting->erase(one);
        }
        one = next;
      }
    }
  }
  count_ -= removed.size();
  return removed;
}

bool Triggers::cancel(const fi_deferred_work& work) {
  return !remove(1, [&](const Deferred& one, const Counter*) { return one.work == &work; }).empty();
}

bool Triggers::cancel(const Lane& lane, void* context) {
  const List removed = remove(1, [&](const Deferred& one, const Counter*) {
    return one.work == nullptr && is_of(one, lane) &&
           context_of(std::get<DeferredOperation>(one.what).call) == context;
  });
  for (const Deferred& one : removed) {
    std::get<DeferredOperation>(one.what).target->drop(one, Status::kCancelled);
  }
  return !removed.empty();
}

void Triggers::flush(const Counter* counter) {
  remove(kMaxOperations, [&](const Deferred& one, const Counter* waits_for) {
    return one.work != nullptr && (counter == nullptr || counter == waits_for);
  });
}

void Triggers::forget(const DeferredTarget& target) {
  remove(kMaxOperations, [&](const Deferred& one, const Counter*) { return is_of(one, target); });
}

void Triggers::forget(const Lane& lane) {
  remove(kMaxOperations, [&](const Deferred& one, const Counter*) { return is_of(one, lane); });
}

void Triggers::forget(const Counter& counter) {
  thresholds_.erase(&counter);
}

bool Triggers::refers_to(const Counter& counter) const {
  const auto own = thresholds_.find(&counter);
  if (own != thresholds_.end() &&
      !(own->second.by_successes.empty() && own->second.by_all.empty())) {
    return true;
  }
  const auto names = [&](const auto& waiting) {
    return std::any_of(waiting.begin(), waiting.end(),
                       [&](const auto& one) { return uses(one.second.front(), counter); });
  };
  return std::any_of(due_.begin(), due_.end(),
                     [&](const Deferred& one) { return uses(one, counter); }) ||
         std::any_of(thresholds_.begin(), thresholds_.end(), [&](const auto& one) {
           return names(one.second.by_successes) || names(one.second.by_all);
         });
}

}  // namespace pullman::ofi
