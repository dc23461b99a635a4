// The address vector (FI_AV_MAP): a fi_addr_t is the address of a record, as usnic's is. Addresses
// are resolved at once, or with an event.
#pragma once

#include <netinet/in.h>
#include <rdma/fi_domain.h>

#include <map>
#include <memory>

#include "standin/world.h"

namespace pullman::standin {

struct AddressVector;
struct EventQueue;

// An address being resolved. At its end the result is written to the caller's memory.
struct Insertion {
  AddressVector* vector = nullptr;
  sockaddr_in address{};
  fi_addr_t* result = nullptr;
  void* context = nullptr;
  unsigned reads_left = 0;
};

struct AddressVector : fid_av {
  AddressVector(bool by_event, void* user_context);

  // Returns false if the address cannot be resolved.
  bool finish(const Insertion& insertion);
  // Returns null, with a fault, if `to` was not inserted or was removed.
  const sockaddr_in* find(fi_addr_t to) const;

  bool by_event;
  EventQueue* events = nullptr;
  std::map<fi_addr_t, std::unique_ptr<sockaddr_in>> addresses;
  int in_flight = 0;
  int bound = 0;  // endpoints that use it
  Counted counted;
};

int open_vector(fid_domain*, fi_av_attr* attributes, fid_av** out, void* context);

}  // namespace pullman::standin
