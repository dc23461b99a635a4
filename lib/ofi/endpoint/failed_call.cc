#include "ofi/endpoint/failed_call.h"

#include <type_traits>

#include "ofi/completion_queue.h"
#include "ofi/counter.h"
#include "ofi/endpoint/lane.h"
#include "ofi/errors.h"

namespace pullman::ofi {

template <typename Call>
void report_failure(const Call& call, Status why) {
  if (Counter* const counter = counter_for(call)) counter->count(false);
  CompletionQueue* const queue = queue_for(call);
  if (queue == nullptr) return;
  constexpr bool kReceives = std::is_same_v<Call, ReceiveCall>;
  Completion& completion = queue->push();
  completion.context = call.context;
  completion.flags = completion_flags(call) | (kReceives ? call.flags & FI_MULTI_RECV : 0);
  if constexpr (kReceives) completion.tag = call.tag;
  completion.error = error_number(why);
  completion.why = why;
}
template void report_failure(const SendCall& call, Status why);
template void report_failure(const ReceiveCall& call, Status why);
template void report_failure(const MemoryCall& call, Status why);
template void report_failure(const AtomicCall& call, Status why);

}  // namespace pullman::ofi
