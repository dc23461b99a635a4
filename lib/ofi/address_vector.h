// An address vector (fi_av(3)): numbers (fi_addr_t) for the addresses of peers. Endpoints that are
// bound to it connect to each address as it is inserted, so that completions name their source.
#pragma once

#include <rdma/fi_domain.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ofi/address.h"

namespace pullman::ofi {

class Connections;
class Domain;
class EventQueue;

class AddressVector : public fid_av {
 public:
  static int open(fid_domain* domain, fi_av_attr* attributes, fid_av** out, void* context);
  ~AddressVector();

  static AddressVector& from(fid_av* handle) { return static_cast<AddressVector&>(*handle); }

  // Adds an endpoint that is bound to it. Under the lock.
  void attach(Connections& endpoint);
  void detach(Connections& endpoint);
  // Connects an endpoint that has opened to all addresses. Under the lock.
  void connect_all(Connections& endpoint) const;
  // Returns nothing if there is no such number. Under the lock.
  const Address* find(fi_addr_t number) const;
  // Returns how many addresses it was opened for.
  std::size_t expected() const { return expected_; }
  // Returns how many bits of an fi_addr_t name a receive context.
  unsigned context_bits() const { return context_bits_; }

  // --- Called by the application.
  Domain& domain() const { return domain_; }

  int insert(const void* addresses, std::size_t count, fi_addr_t* out, std::uint64_t flags,
             void* context);
  int insert_service(const char* node, const char* service, fi_addr_t* out, std::uint64_t flags,
                     void* context);
  int insert_symmetric(const char* node, std::size_t nodes, const char* service,
                       std::size_t services, fi_addr_t* out, std::uint64_t flags, void* context);
  int remove(const fi_addr_t* numbers, std::size_t count);
  int lookup(fi_addr_t number, void* out, std::size_t* length);
  const char* text_of(const void* address, char* out, std::size_t* length) const;
  int bind(struct fid& other);
  int close();

 private:
  AddressVector(Domain& domain, const fi_av_attr& attributes, void* context);

  // Where an insertion reports its results.
  struct Outcome {
    fi_addr_t* numbers;   // or null
    std::uint64_t flags;  // FI_SYNC_ERR: errors go to `context`, an array of int
    void* context;
    std::size_t inserted = 0;
    int error = 0;  // of the last address that failed
  };
  void insert_one(const std::optional<Address>& address, std::size_t place, Outcome& outcome);
  fi_addr_t add(const Address& address);
  int finish(const Outcome& outcome) const;
  void withdraw(fi_addr_t number);

  Domain& domain_;
  const Format format_;
  const bool reports_events_;
  const std::size_t expected_;
  const unsigned context_bits_;
  EventQueue* events_ = nullptr;
  std::vector<std::optional<Address>> addresses_;  // by number
  std::vector<fi_addr_t> free_;                    // numbers of removed addresses
  std::vector<Connections*> endpoints_;
};

}  // namespace pullman::ofi
