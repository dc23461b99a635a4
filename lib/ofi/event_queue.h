// An event queue (fi_eq(3)): events other than completions, such as that addresses were inserted.
// It belongs to a fabric, so it has a lock of its own.
#pragma once

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "ofi/waitable.h"

namespace pullman::ofi {

class Fabric;

class EventQueue : public fid_eq, public Waitable {
 public:
  static int open(fid_fabric* fabric, fi_eq_attr* attributes, fid_eq** out, void* context);
  ~EventQueue() override;

  // Any thread may call these.
  void add(std::uint32_t kind, const fi_eq_entry& entry);
  void add_error(const fi_eq_err_entry& entry);

  // The object is about to be closed: drops its events, which would name nothing.
  void drop_events_of(const struct fid& object);

  // Counts the address vectors that report here.
  void hold() { ++holders_; }
  void release() { --holders_; }

  bool has_news() const override { return !events_.empty(); }

  ssize_t read(std::uint32_t* kind, void* out, std::size_t room, std::uint64_t flags);
  ssize_t read_waiting(std::uint32_t* kind, void* out, std::size_t room, int timeout_ms,
                       std::uint64_t flags);
  ssize_t read_error(fi_eq_err_entry& out, std::uint64_t flags);
  ssize_t write(std::uint32_t kind, const void* bytes, std::size_t length);
  int close();

 private:
  struct Event {
    std::uint32_t kind = 0;
    std::vector<std::byte> bytes;
    bool is_error = false;
    const struct fid* of = nullptr;
    fi_eq_err_entry error{};
  };

  EventQueue(Fabric& fabric, const fi_eq_attr& attributes, void* context);
  void append(std::uint32_t kind, const void* bytes, std::size_t length, const struct fid* of);
  ssize_t take(std::uint32_t* kind, void* out, std::size_t room, std::uint64_t flags);

  Fabric& fabric_;
  Lock lock_;
  std::deque<Event> events_;
  std::size_t holders_ = 0;
};

}  // namespace pullman::ofi
