// The operations of an endpoint that start when a counter reaches a threshold (fi_trigger(3)). What
// can be refused is refused when the operation is deferred; what fails later is an error entry.
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
  // A triggered operation: its context says when it is due. Takes the lock.
  template <typename Call>
  ssize_t defer(const Call& call);

  // Whether the call can be deferred as work: 0 or an error number. Under the lock.
  template <typename Call>
  static ssize_t check_work(const Call& call);

  bool begin(const Deferred& deferred) override;
  void try_again() override { blocked_ = false; }
  void drop(const Deferred& deferred, Status why) override;

 private:
  Domain& domain_;
  Issuer& issuer_;
  const bool offers_triggers_;
  bool blocked_ = false;  // a due operation could not begin: none behind it may overtake it
};

}  // namespace pullman::ofi
