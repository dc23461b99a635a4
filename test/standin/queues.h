// Completion queues and event queues of fixed size.
#pragma once

#include <rdma/fi_eq.h>

#include <cstddef>
#include <cstdint>
#include <deque>

#include "standin/world.h"

namespace pullman::standin {

struct Insertion;

struct CompletionQueue : fid_cq {
  CompletionQueue(std::size_t entries, void* user_context);

  // `error` 0: success. An entry without room is a fault.
  void push(void* context, std::uint64_t flags, std::size_t length, int error);

  ssize_t read(fi_cq_msg_entry* out, std::size_t count);
  ssize_t read_error(fi_cq_err_entry& out);

  struct Entry {
    fi_cq_msg_entry message;
    int error;
  };
  std::size_t room;
  std::deque<Entry> entries;
  bool for_sends = false;  // bound to an endpoint's sends
  int bound = 0;           // endpoints that use it
  Counted counted;
};

struct EventQueue : fid_eq {
  explicit EventQueue(void* user_context);

  ssize_t read(std::uint32_t& kind, fi_eq_entry& out);
  ssize_t read_error(fi_eq_err_entry& out);

  struct Event {
    std::uint32_t kind;
    fi_eq_entry entry;
    int error;  // other than 0: an error event
  };
  std::deque<Event> events;
  std::deque<Insertion> insertions;  // addresses being resolved
  Counted counted;

 private:
  void resolve_due();
};

int open_completion_queue(fi_cq_attr* attributes, fid_cq** out, void* context);
int open_event_queue(fid_fabric*, fi_eq_attr*, fid_eq** out, void* context);

}  // namespace pullman::standin
