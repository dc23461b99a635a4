#include "ofi/completion_queue.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "ofi/domain.h"
#include "ofi/errors.h"
#include "ofi/guarded.h"
#include "ofi/wait_set.h"
#include "ofi/waitable_calls.h"

namespace pullman::ofi {
namespace {

constexpr std::size_t kMaxReserved = 65536;
constexpr std::chrono::milliseconds kNap{1};

Instant read_clock() {
  return Instant(std::chrono::steady_clock::now().time_since_epoch());
}

CompletionQueue& queue_of(fid_cq* handle) {
  return static_cast<CompletionQueue&>(*handle);
}

// Returns where the next entry goes.
void* write(const Completion& from, fi_cq_format format, void* out) {
  const auto put = [out](const auto& entry) {
    std::memcpy(out, &entry, sizeof entry);
    return static_cast<void*>(static_cast<char*>(out) + sizeof entry);
  };
  switch (format) {
    case FI_CQ_FORMAT_CONTEXT:
      return put(fi_cq_entry{from.context});
    case FI_CQ_FORMAT_MSG:
      return put(fi_cq_msg_entry{from.context, from.flags, from.length});
    case FI_CQ_FORMAT_DATA:
      return put(fi_cq_data_entry{from.context, from.flags, from.length, from.buffer, from.data});
    case FI_CQ_FORMAT_UNSPEC:
    case FI_CQ_FORMAT_TAGGED:
      break;
  }
  return put(
      fi_cq_tagged_entry{from.context, from.flags, from.length, from.buffer, from.data, from.tag});
}

fi_ops_cq& queue_operations() {
  static fi_ops_cq table{
      .size = sizeof(fi_ops_cq),
      .read = [](fid_cq* queue, void* out,
                 std::size_t count) { return queue_of(queue).read(out, count, nullptr); },
      .readfrom = [](fid_cq* queue, void* out, std::size_t count,
                     fi_addr_t* sources) { return queue_of(queue).read(out, count, sources); },
      .readerr = [](fid_cq* queue, fi_cq_err_entry* out,
                    std::uint64_t) { return queue_of(queue).read_error(*out); },
      .sread =
          [](fid_cq* queue, void* out, std::size_t count, const void*, int timeout) {
            return queue_of(queue).read_waiting(out, count, nullptr, timeout);
          },
      .sreadfrom =
          [](fid_cq* queue, void* out, std::size_t count, fi_addr_t* sources, const void*,
             int timeout) { return queue_of(queue).read_waiting(out, count, sources, timeout); },
      .signal = [](fid_cq* queue) { return queue_of(queue).signal(); },
      .strerror = write_sentence<fid_cq>};
  return table;
}

}  // namespace

CompletionQueue::CompletionQueue(Domain& domain, const fi_cq_attr& attributes, void* context)
    : fid_cq{},
      Waitable(domain.lock(), attributes.wait_obj,
               attributes.wait_obj == FI_WAIT_SET ? WaitSet::from(attributes.wait_set) : nullptr),
      domain_(domain),
      format_(attributes.format == FI_CQ_FORMAT_UNSPEC ? FI_CQ_FORMAT_TAGGED : attributes.format),
      entries_(std::min(attributes.size, kMaxReserved)) {
  fid = {.fclass = FI_CLASS_CQ,
         .context = context,
         .ops = &waitable_operations<CompletionQueue, fid_cq>()};
  ops = &queue_operations();
  domain_.hold();
}

CompletionQueue::~CompletionQueue() {
  domain_.release();
}

int CompletionQueue::close() {
  {
    Locked locked(lock());  // an endpoint that releases it may not be done with it yet
    if (attached() || held()) return -FI_EBUSY;
  }
  delete this;
  return 0;
}

int CompletionQueue::open(fid_domain* domain, fi_cq_attr* attributes, fid_cq** out, void* context) {
  return guarded([&]() -> int {
    const fi_cq_attr given = attributes != nullptr ? *attributes : fi_cq_attr{};
    if (given.format > FI_CQ_FORMAT_TAGGED) return -FI_ENOSYS;
    if (given.wait_obj == FI_WAIT_MUTEX_COND || given.wait_obj == FI_WAIT_POLLFD) {
      return -FI_ENOSYS;
    }
    if (given.wait_obj == FI_WAIT_SET && given.wait_set == nullptr) return -FI_EINVAL;
    *out = new CompletionQueue(Domain::from(domain), given, context);
    return 0;
  });
}

ssize_t CompletionQueue::read(void* out, std::size_t count, fi_addr_t* sources) {
  ssize_t taken = 0;
  auto rest = IdlePolicy::Rest::kNone;
  {
    FairLocked locked(lock());
    // A read of no entries asks for progress. A program that reads until nothing is left (Open MPI)
    // has just been given everything: polling the NICs again would cost a system call or two before
    // it handles that.
    if (count == 0 || (entries_.empty() && !emptied_)) {
      progress();
    } else if (entries_.empty()) {
      progress_again();
    }
    taken = take(out, count, sources);
    emptied_ = taken > 0 && static_cast<std::size_t>(taken) < count;
    rest = idle_policy_.due(taken == -FI_EAGAIN, read_clock);
  }
  if (rest == IdlePolicy::Rest::kYield) [[unlikely]]
    yield();
  if (rest == IdlePolicy::Rest::kNap) [[unlikely]]
    nap(kNap);
  return taken;
}

void CompletionQueue::yield() {
  const Instant before = read_clock();
  std::this_thread::yield();
  const Instant now = read_clock();
  const Locked locked(lock());
  idle_policy_.note_yield(now, now - before);
}

ssize_t CompletionQueue::take(void* out, std::size_t count, fi_addr_t* sources) {
  if (entries_.empty()) {
    clear_wake();
    return -FI_EAGAIN;
  }
  if (entries_.front().error != 0) return -FI_EAVAIL;
  std::size_t taken = 0;
  while (taken < count && !entries_.empty() && entries_.front().error == 0) {
    out = write(entries_.front(), format_, out);
    if (sources != nullptr) sources[taken] = entries_.front().source;
    entries_.pop();
    ++taken;
  }
  if (entries_.empty()) clear_wake();
  return static_cast<ssize_t>(taken);
}

ssize_t CompletionQueue::read_error(fi_cq_err_entry& out) {
  Locked locked(lock());
  if (entries_.empty() || entries_.front().error == 0) return -FI_EAGAIN;
  const Completion& from = entries_.front();
  out.op_context = from.context;
  out.flags = from.flags;
  out.len = from.length;
  out.buf = from.buffer;
  out.data = from.data;
  out.tag = from.tag;
  out.olen = from.cut_off;
  out.err = from.error;
  out.prov_errno = static_cast<int>(from.why);
  // Applications older than 1.5 have no field for its size; there never is any data.
  if (FI_VERSION_GE(domain_.api_version(), FI_VERSION(1, 5))) out.err_data_size = 0;
  entries_.pop();
  if (entries_.empty()) clear_wake();
  return 1;
}

ssize_t CompletionQueue::read_waiting(void* out, std::size_t count, fi_addr_t* sources,
                                      int timeout_ms) {
  if (!can_wait()) return -FI_EINVAL;
  ssize_t taken = -FI_EAGAIN;
  std::optional<std::uint64_t> signals_before;
  wait_until(timeout_ms, [&] {
    if (!signals_before) {
      signals_before = signals_;
      ++waiting_;
    }
    taken = take(out, count, sources);
    if (taken != -FI_EAGAIN) return true;
    return signals_ != *signals_before || std::exchange(signalled_, false);
  });
  Locked locked(lock());
  --waiting_;
  return taken;
}

int CompletionQueue::signal() {
  if (!can_wait()) return -FI_ENOSYS;
  Locked locked(lock());
  ++signals_;
  signalled_ = waiting_ == 0;
  wake();
  return 0;
}

}  // namespace pullman::ofi
