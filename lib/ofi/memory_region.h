// Registered memory: what peers may reach, under which key.
#pragma once

#include <rdma/fi_domain.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "pullman/context.h"
#include "pullman/operations.h"

namespace pullman::ofi {

class Domain;

class MemoryRegion : public fid_mr {
 public:
  MemoryRegion(Domain& domain, const fi_mr_attr& attributes, std::uint64_t chosen_key);

  std::span<std::byte> bytes() const { return bytes_; }
  Access access() const { return access_; }
  Domain& domain() const { return domain_; }

 private:
  Domain& domain_;
  const std::span<std::byte> bytes_;
  const Access access_;
};

// The regions of a domain, by key. Under the domain's lock.
class Regions {
 public:
  // Keys come as applications ask for them (scalable registration), or are drawn (basic).
  explicit Regions(bool draws_keys) : draws_keys_(draws_keys) {}

  bool draws_keys() const { return draws_keys_; }
  bool has(std::uint64_t key) const { return by_key_.contains(key); }
  void add(MemoryRegion& region);
  void remove(const MemoryRegion& region);

  // An endpoint's context: its peers reach all regions, of now and later.
  void open_to(Context& context);
  void close_to(Context& context) { std::erase(contexts_, &context); }

 private:
  const bool draws_keys_;
  std::map<std::uint64_t, MemoryRegion*> by_key_;
  std::vector<Context*> contexts_;
};

fi_ops_mr& registration_operations();

}  // namespace pullman::ofi
