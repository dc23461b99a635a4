#include "standin/queues.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <new>

#include "standin/vector.h"

namespace pullman::standin {
namespace {

int close_completions(fid* object) {
  const Locked locked;
  auto* queue = static_cast<CompletionQueue*>(reinterpret_cast<fid_cq*>(object));
  if (!demand(queue->bound == 0, "a completion queue was closed before its endpoint")) {
    return -FI_EBUSY;
  }
  delete queue;
  return 0;
}

int close_events(fid* object) {
  const Locked locked;
  auto* queue = static_cast<EventQueue*>(reinterpret_cast<fid_eq*>(object));
  if (!demand(queue->insertions.empty(), "an event queue was closed with resolutions under way")) {
    return -FI_EBUSY;
  }
  delete queue;
  return 0;
}

ssize_t read_completions(fid_cq* queue, void* out, std::size_t count) {
  const Locked locked;
  world().work();
  return static_cast<CompletionQueue*>(queue)->read(static_cast<fi_cq_msg_entry*>(out), count);
}

ssize_t read_failed_completion(fid_cq* queue, fi_cq_err_entry* out, std::uint64_t) {
  const Locked locked;
  return static_cast<CompletionQueue*>(queue)->read_error(*out);
}

ssize_t read_event(fid_eq* queue, std::uint32_t* kind, void* out, std::size_t length,
                   std::uint64_t flags) {
  const Locked locked;
  if (length < sizeof(fi_eq_entry)) return -FI_ETOOSMALL;
  if (flags != 0) return -FI_ENOSYS;
  return static_cast<EventQueue*>(queue)->read(*kind, *static_cast<fi_eq_entry*>(out));
}

ssize_t read_failed_event(fid_eq* queue, fi_eq_err_entry* out, std::uint64_t) {
  const Locked locked;
  return static_cast<EventQueue*>(queue)->read_error(*out);
}

const char* say_nothing(fid_cq*, int, const void*, char*, std::size_t) {
  return "stand-in error";
}
const char* say_nothing_either(fid_eq*, int, const void*, char*, std::size_t) {
  return "stand-in error";
}

fi_ops completion_fid_ops{sizeof(fi_ops),     close_completions,  refuse<-FI_ENOSYS>,
                          refuse<-FI_ENOSYS>, refuse<-FI_ENOSYS>, refuse<-FI_ENOSYS>,
                          refuse<-FI_ENOSYS>};
fi_ops_cq completion_ops{sizeof(fi_ops_cq),      read_completions,   refuse<-FI_ENOSYS>,
                         read_failed_completion, refuse<-FI_ENOSYS>, refuse<-FI_ENOSYS>,
                         refuse<-FI_ENOSYS>,     say_nothing};
fi_ops event_fid_ops{sizeof(fi_ops),     close_events,       refuse<-FI_ENOSYS>, refuse<-FI_ENOSYS>,
                     refuse<-FI_ENOSYS>, refuse<-FI_ENOSYS>, refuse<-FI_ENOSYS>};
fi_ops_eq event_ops{sizeof(fi_ops_eq),  read_event,         read_failed_event,
                    refuse<-FI_ENOSYS>, refuse<-FI_ENOSYS>, say_nothing_either};

}  // namespace

CompletionQueue::CompletionQueue(std::size_t entry_count, void* user_context)
    : fid_cq{{FI_CLASS_CQ, user_context, &completion_fid_ops}, &completion_ops},
      room(entry_count) {}

void CompletionQueue::push(void* context, std::uint64_t flags, std::size_t length, int error) {
  if (!demand(entries.size() < room, "a completion queue was overrun")) return;
  entries.push_back({{context, flags, length}, error});
}

ssize_t CompletionQueue::read(fi_cq_msg_entry* out, std::size_t count) {
  if (for_sends) ++world().controls.tallies.send_queue_reads;
  if (entries.empty()) return -FI_EAGAIN;
  if (entries.front().error != 0) return -FI_EAVAIL;
  std::size_t done = 0;
  while (done < count && !entries.empty() && entries.front().error == 0) {
    out[done++] = entries.front().message;
    entries.pop_front();
  }
  return static_cast<ssize_t>(done);
}

ssize_t CompletionQueue::read_error(fi_cq_err_entry& out) {
  if (entries.empty() || entries.front().error == 0) return -FI_EAGAIN;
  const Entry& entry = entries.front();
  out = {};
  out.op_context = entry.message.op_context;
  out.flags = entry.message.flags;
  out.len = entry.message.len;
  out.err = entry.error;
  entries.pop_front();
  return 1;
}

EventQueue::EventQueue(void* user_context)
    : fid_eq{{FI_CLASS_EQ, user_context, &event_fid_ops}, &event_ops} {}

// Each read takes every resolution a step further. One that fails gives an error event, and then
// the normal event with a count of none.
void EventQueue::resolve_due() {
  std::deque<Insertion> later;
  for (Insertion& insertion : insertions) {
    if (insertion.reads_left > 0) {
      --insertion.reads_left;
      later.push_back(insertion);
      continue;
    }
    const fi_eq_entry entry{&insertion.vector->fid, insertion.context, 0};
    const bool inserted = insertion.vector->finish(insertion);
    if (!inserted) events.push_back({0, entry, FI_EHOSTUNREACH});
    events.push_back({FI_AV_COMPLETE, {entry.fid, entry.context, inserted ? 1u : 0u}, 0});
  }
  insertions.swap(later);
}

ssize_t EventQueue::read(std::uint32_t& kind, fi_eq_entry& out) {
  resolve_due();
  if (events.empty()) return -FI_EAGAIN;
  if (events.front().error != 0) return -FI_EAVAIL;
  kind = events.front().kind;
  out = events.front().entry;
  events.pop_front();
  return sizeof out;
}

ssize_t EventQueue::read_error(fi_eq_err_entry& out) {
  if (events.empty() || events.front().error == 0) return -FI_EAGAIN;
  const Event& event = events.front();
  out = {};
  out.fid = event.entry.fid;
  out.context = event.entry.context;
  out.err = event.error;
  events.pop_front();
  return sizeof out;
}

int open_completion_queue(fi_cq_attr* attributes, fid_cq** out, void* context) {
  const Locked locked;
  if (attributes->format != FI_CQ_FORMAT_MSG) return -FI_ENOSYS;
  if (attributes->wait_obj != FI_WAIT_NONE && attributes->wait_obj != FI_WAIT_UNSPEC) {
    return -FI_ENOSYS;
  }
  constexpr std::size_t kUnstated = 256;
  if (attributes->size == 0) attributes->size = kUnstated;
  const std::size_t limit = world().controls.orders.completion_queue_limit;
  if (limit != 0) attributes->size = std::min(attributes->size, limit);
  *out = new (std::nothrow) CompletionQueue(attributes->size, context);
  return *out != nullptr ? 0 : -FI_ENOMEM;
}

int open_event_queue(fid_fabric*, fi_eq_attr*, fid_eq** out, void* context) {
  const Locked locked;
  *out = new (std::nothrow) EventQueue(context);
  return *out != nullptr ? 0 : -FI_ENOMEM;
}

}  // namespace pullman::standin
