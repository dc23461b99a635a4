// Registered memory that peers may access by a key.
#pragma once

#include <rdma/fi_domain.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "pullman/context.h"
#include "pullman/operations.h"

namespace pullman::ofi {

class Counter;
class Domain;
class EndpointBinding;

// The counters of accesses by peers.
class RemoteAccessCounters {
 public:
  // `kinds`: FI_REMOTE_READ, FI_REMOTE_WRITE, or both.
  void bind(Counter& counter, std::uint64_t kinds);
  void forget(const Counter& counter);
  // Whether one of those kinds is counted.
  bool counts_any(std::uint64_t kinds) const;
  bool any() const { return reads_ != nullptr || writes_ != nullptr; }
  bool counts(const Counter& counter) const { return reads_ == &counter || writes_ == &counter; }
  // Counts the accesses since the last call.
  void count(const RemoteUse& now, RemoteUse& before) const;

 private:
  Counter* reads_ = nullptr;
  Counter* writes_ = nullptr;
};

class MemoryRegion : public fid_mr {
 public:
  MemoryRegion(Domain& domain, const fi_mr_attr& attributes, std::uint64_t chosen_key);

  int bind(struct fid& other, std::uint64_t flags);
  // Begins to count accesses by peers of that context.
  void begin_counting(const Context& context);
  // Counts their accesses since the last call.
  void count_use(const Context& context);
  bool counts(const Counter& counter) const { return counters_.counts(counter); }
  // The object is closed: another may get its address later.
  void forget(const Counter& counter) { counters_.forget(counter); }
  void forget(const Context& context) { counted_.erase(&context); }

  std::span<std::byte> bytes() const { return bytes_; }
  Access access() const { return access_; }
  Domain& domain() const { return domain_; }

 private:
  Domain& domain_;
  const std::span<std::byte> bytes_;
  const Access access_;
  RemoteAccessCounters counters_;
  std::unordered_map<const Context*, RemoteUse> counted_;
};

// The regions of a domain, by key. Under the domain's lock.
class Regions {
 public:
  // Applications choose keys (scalable registration), or this draws them (basic).
  explicit Regions(bool draws_keys) : draws_keys_(draws_keys) {}

  bool draws_keys() const { return draws_keys_; }
  bool has(std::uint64_t key) const { return by_key_.contains(key); }
  void add(MemoryRegion& region);
  void remove(const MemoryRegion& region);

  // Opens all present and future regions to the peers of an endpoint, or closes them when it begins
  // to close: an application that closes a region then may use its memory for anything.
  void open_to(Context& context, EndpointBinding& binding);
  void close_to(Context& context);

  // Adds a counter that is bound to a region: all endpoints report there until no such region is
  // left.
  void add_counter(Counter& counter);
  void begin_counting(MemoryRegion& region) const;
  void remove_counter(const Counter& counter);
  bool counts(const Counter& counter) const;
  // Counts the accesses by peers of that context, for all regions.
  void count_use(const Context& context) {
    if (!counters_.empty()) count_each_use(context);
  }

 private:
  void count_each_use(const Context& context);
  void drop_idle_counters();

  const bool draws_keys_;
  std::map<std::uint64_t, MemoryRegion*> by_key_;
  struct Reached {
    Context* context;
    EndpointBinding* binding;
  };
  std::vector<Reached> endpoints_;
  std::vector<Counter*> counters_;
};

fi_ops_mr& registration_operations();

}  // namespace pullman::ofi
