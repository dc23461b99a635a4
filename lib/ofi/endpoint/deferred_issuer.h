// The operations of an endpoint that start when a counter reaches a threshold (fi_trigger(3)). An
// invalid operation is refused when it is deferred, as far as possible; later failures are error
// entries.
#pragma once

#include <sys/types.h>

#include "ofi/calls.h"
#include "ofi/endpoint/issuer.h"
#include "ofi/triggers.h"

namespace pullman::ofi {

class Domain;

class DeferredIssuer final : public DeferredTarget {
 public:
  // Whether calls with FI_TRIGGER are accepted.
  enum class TriggeredCalls { kRefused, kOffered };

  DeferredIssuer(Domain& domain, Issuer& issuer, TriggeredCalls triggered);

  template <typename Call>
  static bool is_triggered(const Call& call) {
    return (call.flags & FI_TRIGGER) != 0;
  }
  // Defers a triggered operation, whose context tells when it is due. Takes the lock.
  template <typename Call>
  ssize_t defer(const Call& call);

  // Checks whether the call can be deferred as work. Returns 0 or an error number. Under the lock.
  template <typename Call>
  static ssize_t check_work(const Call& call);

  bool begin(const Deferred& deferred) override;
  void try_again() override { blocked_ = false; }
  void drop(const Deferred& deferred, Status why) override;

 private:
  Domain& domain_;
  Issuer& issuer_;
  const bool offers_triggers_;
  bool blocked_ = false;  // a due operation could not begin; none may overtake it
};

}  // namespace pullman::ofi
