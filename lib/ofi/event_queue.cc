#include "ofi/event_queue.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>

#include "ofi/errors.h"
#include "ofi/fabric.h"
#include "ofi/guarded.h"
#include "ofi/wait_set.h"
#include "ofi/waitable_calls.h"

namespace pullman::ofi {
namespace {

EventQueue& queue_of(fid_eq* handle) {
  return static_cast<EventQueue&>(*handle);
}

fi_ops_eq& queue_operations() {
  static fi_ops_eq table{
      .size = sizeof(fi_ops_eq),
      .read = [](fid_eq* queue, std::uint32_t* kind, void* out, std::size_t room,
                 std::uint64_t flags) { return queue_of(queue).read(kind, out, room, flags); },
      .readerr = [](fid_eq* queue, fi_eq_err_entry* out,
                    std::uint64_t flags) { return queue_of(queue).read_error(*out, flags); },
      .write = [](fid_eq* queue, std::uint32_t kind, const void* bytes, std::size_t length,
                  std::uint64_t) { return queue_of(queue).write(kind, bytes, length); },
      .sread =
          [](fid_eq* queue, std::uint32_t* kind, void* out, std::size_t room, int timeout,
             std::uint64_t flags) {
            return queue_of(queue).read_waiting(kind, out, room, timeout, flags);
          },
      .strerror = write_sentence<fid_eq>};
  return table;
}

}  // namespace

EventQueue::EventQueue(Fabric& fabric, const fi_eq_attr& attributes, void* context)
    : fid_eq{},
      Waitable(lock_, attributes.wait_obj,
               attributes.wait_obj == FI_WAIT_SET ? WaitSet::from(attributes.wait_set) : nullptr),
      fabric_(fabric) {
  fid = {
      .fclass = FI_CLASS_EQ, .context = context, .ops = &waitable_operations<EventQueue, fid_eq>()};
  ops = &queue_operations();
  fabric_.hold();
}

EventQueue::~EventQueue() {
  fabric_.release();
}

int EventQueue::close() {
  if (holders_ != 0) return -FI_EBUSY;
  delete this;
  return 0;
}

int EventQueue::open(fid_fabric* fabric, fi_eq_attr* attributes, fid_eq** out, void* context) {
  return guarded([&]() -> int {
    const fi_eq_attr given = attributes != nullptr ? *attributes : fi_eq_attr{};
    if (given.wait_obj == FI_WAIT_MUTEX_COND || given.wait_obj == FI_WAIT_POLLFD) {
      return -FI_ENOSYS;
    }
    if (given.wait_obj == FI_WAIT_SET && given.wait_set == nullptr) return -FI_EINVAL;
    *out = new EventQueue(Fabric::from(fabric), given, context);
    return 0;
  });
}

void EventQueue::add(std::uint32_t kind, const fi_eq_entry& entry) {
  append(kind, &entry, sizeof entry, entry.fid);
}

void EventQueue::drop_events_of(const struct fid& object) {
  Locked locked(lock_);
  std::erase_if(events_, [&](const Event& event) { return event.of == &object; });
}

void EventQueue::add_error(const fi_eq_err_entry& entry) {
  Locked locked(lock_);
  Event event;
  event.is_error = true;
  event.error = entry;
  event.of = entry.fid;
  events_.push_back(std::move(event));
  wake();
}

ssize_t EventQueue::write(std::uint32_t kind, const void* bytes, std::size_t length) {
  return guarded([&]() -> ssize_t {
    append(kind, bytes, length, nullptr);
    return static_cast<ssize_t>(length);
  });
}

void EventQueue::append(std::uint32_t kind, const void* bytes, std::size_t length,
                        const struct fid* of) {
  Locked locked(lock_);
  const auto* first = static_cast<const std::byte*>(bytes);
  events_.push_back({.kind = kind, .bytes = {first, first + length}, .of = of, .error = {}});
  wake();
}

ssize_t EventQueue::take(std::uint32_t* kind, void* out, std::size_t room, std::uint64_t flags) {
  if (events_.empty()) {
    clear_wake();
    return -FI_EAGAIN;
  }
  const Event& event = events_.front();
  if (event.is_error) return -FI_EAVAIL;
  if (event.bytes.size() > room) return -FI_ETOOSMALL;
  const auto length = static_cast<ssize_t>(event.bytes.size());
  *kind = event.kind;
  if (length > 0) std::memcpy(out, event.bytes.data(), event.bytes.size());
  if ((flags & FI_PEEK) == 0) events_.pop_front();
  if (events_.empty()) clear_wake();
  return length;
}

ssize_t EventQueue::read(std::uint32_t* kind, void* out, std::size_t room, std::uint64_t flags) {
  Locked locked(lock_);
  return take(kind, out, room, flags);
}

ssize_t EventQueue::read_waiting(std::uint32_t* kind, void* out, std::size_t room, int timeout_ms,
                                 std::uint64_t flags) {
  if (!can_wait()) return -FI_EINVAL;
  ssize_t taken = -FI_EAGAIN;
  wait_until(timeout_ms, [&] { return (taken = take(kind, out, room, flags)) != -FI_EAGAIN; });
  return taken;
}

ssize_t EventQueue::read_error(fi_eq_err_entry& out, std::uint64_t flags) {
  Locked locked(lock_);
  if (events_.empty() || !events_.front().is_error) return -FI_EAGAIN;
  out = events_.front().error;
  if ((flags & FI_PEEK) == 0) events_.pop_front();
  if (events_.empty()) clear_wake();
  return sizeof(fi_eq_err_entry);
}

}  // namespace pullman::ofi
