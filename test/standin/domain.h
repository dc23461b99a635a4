// The fabric, the domain, and a domain's registered memory.
#pragma once

#include <rdma/fi_domain.h>

#include <cstddef>
#include <set>

#include "standin/world.h"

namespace pullman::standin {

struct EventQueue;
struct Registration;

struct Domain : fid_domain {
  explicit Domain(void* user_context);

  void report_link(bool up);
  // Reports a fault unless `descriptor` is of memory registered here that holds the bytes and
  // permits the access.
  bool may_use(const void* descriptor, const void* bytes, std::size_t length,
               std::uint64_t access) const;

  EventQueue* events = nullptr;
  std::set<Registration*> registrations;
  int endpoints = 0;
  Counted counted;
};

struct Registration : fid_mr {
  Registration(Domain& owner, const void* start, std::size_t length, std::uint64_t permitted);

  Domain& domain;
  const std::byte* first;
  std::size_t bytes;
  std::uint64_t access;
  Counted counted;
};

int open_fabric(fi_fabric_attr* attributes, fid_fabric** out, void* context);

}  // namespace pullman::standin
