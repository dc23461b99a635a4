// Starts operations: the one place that chooses the component for a call. Under the domain's lock.
#pragma once

#include <sys/types.h>

#include "ofi/calls.h"
#include "ofi/endpoint/activity.h"
#include "ofi/endpoint/atomic_initiator.h"
#include "ofi/endpoint/receiver.h"
#include "ofi/endpoint/rma_initiator.h"
#include "ofi/endpoint/transmitter.h"

namespace pullman::ofi {

class Issuer {
 public:
  Issuer(Activity& activity, Transmitter& transmitter, Receiver& receiver, RmaInitiator& rma,
         AtomicInitiator& atomics)
      : activity_(activity),
        transmitter_(transmitter),
        receiver_(receiver),
        rma_(rma),
        atomics_(atomics) {}

  void note_call() { activity_.note_call(); }
  // Returns 0 if a completion follows or has been written; otherwise an error number.
  template <typename Call>
  ssize_t begin(const Call& call) {
    note_call();
    return component_for(call).begin(call);
  }

 private:
  Transmitter& component_for(const SendCall&) { return transmitter_; }
  Receiver& component_for(const ReceiveCall&) { return receiver_; }
  RmaInitiator& component_for(const MemoryCall&) { return rma_; }
  AtomicInitiator& component_for(const AtomicCall&) { return atomics_; }

  Activity& activity_;
  Transmitter& transmitter_;
  Receiver& receiver_;
  RmaInitiator& rma_;
  AtomicInitiator& atomics_;
};

}  // namespace pullman::ofi
