// A counter (fi_cntr(3)): how many operations succeeded, and how many failed.
#pragma once

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include <cstdint>
#include <vector>

#include "ofi/waitable.h"

namespace pullman::ofi {

class Domain;
class EndpointBinding;

class Counter : public fid_cntr, public Waitable {
 public:
  static Counter& from(fid_cntr* handle) { return static_cast<Counter&>(*handle); }

  static int open(fid_domain* domain, fi_cntr_attr* attributes, fid_cntr** out, void* context);
  ~Counter() override;

  // Under the lock.
  void count(bool success) {
    ++(success ? value_ : errors_);
    notify();
  }

  // Counts `number` successes. Under the lock.
  void count_many(std::uint64_t number) {
    if (number == 0) return;
    value_ += number;
    notify();
  }

  // Adds an endpoint whose packets may change this counter. Under the lock.
  void attach(EndpointBinding& endpoint);
  void detach(EndpointBinding& endpoint);
  const std::vector<EndpointBinding*>& endpoints() const { return endpoints_; }

  enum class Which { kSuccesses, kErrors };
  enum class How { kAdd, kSet };
  // Under the lock.
  void alter(Which which, std::uint64_t value, How how) {
    std::uint64_t& counter = which == Which::kSuccesses ? value_ : errors_;
    counter = how == How::kAdd ? counter + value : value;
    notify();
  }

  std::uint64_t successes() const { return value_; }
  std::uint64_t failures() const { return errors_; }

  // Deferred operations wait for the counter to reach a threshold.
  void set_watched() { watched_ = true; }

  Domain& domain() const { return domain_; }

  // For poll and wait sets: whether it has changed since the application read it.
  bool has_news() const override { return value_ != read_value_ || errors_ != read_errors_; }

  std::uint64_t read();
  std::uint64_t read_errors();
  // Returns 0; -FI_EAVAIL if an operation fails meanwhile; or -FI_ETIMEDOUT.
  int wait(std::uint64_t threshold, int timeout_ms);

  int change(Which which, std::uint64_t value, How how);
  int close();

 private:
  Counter(Domain& domain, const fi_cntr_attr& attributes, void* context);

  // Wakes everything that waits for the counter; may be called from inside a completion.
  void notify() {
    if (watched_) [[unlikely]]
      notify_triggers();
    wake();
  }
  void notify_triggers();
  bool is_in_use();

  Domain& domain_;
  std::vector<EndpointBinding*> endpoints_;
  bool watched_ = false;
  std::uint64_t value_ = 0;
  std::uint64_t errors_ = 0;
  std::uint64_t read_value_ = 0;  // the values that the application read last
  std::uint64_t read_errors_ = 0;
};

}  // namespace pullman::ofi
