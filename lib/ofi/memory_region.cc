#include "ofi/memory_region.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <random>

#include "ofi/counter.h"
#include "ofi/domain.h"
#include "ofi/endpoint/binding.h"
#include "ofi/fids.h"
#include "ofi/guarded.h"

namespace pullman::ofi {
namespace {

// Returns what peers may do; the owner's own accesses need no right.
Access access_for(std::uint64_t bits) {
  const bool read = (bits & FI_REMOTE_READ) != 0;
  const bool write = (bits & FI_REMOTE_WRITE) != 0;
  if (read && write) return Access::kReadWrite;
  if (read) return Access::kRead;
  return write ? Access::kWrite : Access::kNone;
}

std::uint64_t draw_key(const Regions& regions) {
  std::random_device random;
  for (;;) {
    const std::uint64_t key = (std::uint64_t{random()} << 32) | random();
    if (key != FI_KEY_NOTAVAIL && !regions.has(key)) return key;
  }
}

int register_attributes(fid* plain, const fi_mr_attr* attributes, std::uint64_t, fid_mr** out) {
  return guarded([&]() -> int {
    if (plain->fclass != FI_CLASS_DOMAIN || attributes == nullptr) return -FI_EINVAL;
    if (attributes->iov_count != 1 || attributes->iface != FI_HMEM_SYSTEM) return -FI_ENOSYS;
    Domain& domain = object_of<Domain, fid_domain>(plain);
    Locked locked(domain.lock());
    Regions& regions = domain.regions();
    if (!regions.draws_keys() && regions.has(attributes->requested_key)) return -FI_ENOKEY;
    const std::uint64_t key = regions.draws_keys() ? draw_key(regions) : attributes->requested_key;
    auto* region = new MemoryRegion(domain, *attributes, key);
    regions.add(*region);
    domain.hold();
    *out = region;
    return 0;
  });
}

int register_segments(fid* plain, const iovec* segments, std::size_t count, std::uint64_t access,
                      std::uint64_t offset, std::uint64_t key, std::uint64_t flags, fid_mr** out,
                      void* context) {
  fi_mr_attr attributes{};
  attributes.mr_iov = segments;
  attributes.iov_count = count;
  attributes.access = access;
  attributes.offset = offset;
  attributes.requested_key = key;
  attributes.context = context;
  return register_attributes(plain, &attributes, flags, out);
}

int register_bytes(fid* plain, const void* bytes, std::size_t length, std::uint64_t access,
                   std::uint64_t offset, std::uint64_t key, std::uint64_t flags, fid_mr** out,
                   void* context) {
  const iovec segment{const_cast<void*>(bytes), length};
  return register_segments(plain, &segment, 1, access, offset, key, flags, out, context);
}

int close_region(fid* plain) {
  auto& region = object_of<MemoryRegion, fid_mr>(plain);
  Domain& domain = region.domain();
  {
    Locked locked(domain.lock());
    domain.regions().remove(region);
  }
  domain.release();
  delete &region;
  return 0;
}

int bind_region(fid* plain, fid* other, std::uint64_t flags) {
  return guarded(
      [&]() -> int { return object_of<MemoryRegion, fid_mr>(plain).bind(*other, flags); });
}

int control_region(fid*, int command, void*) {
  return command == FI_ENABLE || command == FI_REFRESH ? 0 : -FI_ENOSYS;
}

}  // namespace

MemoryRegion::MemoryRegion(Domain& domain, const fi_mr_attr& attributes, std::uint64_t chosen_key)
    : fid_mr{},
      domain_(domain),
      bytes_(static_cast<std::byte*>(attributes.mr_iov[0].iov_base), attributes.mr_iov[0].iov_len),
      access_(access_for(attributes.access)) {
  static fi_ops object =
      table_of({.close = close_region, .bind = bind_region, .control = control_region});
  fid = {.fclass = FI_CLASS_MR, .context = attributes.context, .ops = &object};
  mem_desc = this;
  key = chosen_key;
}

// Regions need no endpoint; binding one anyway (FI_MR_ENDPOINT) changes nothing.
int MemoryRegion::bind(struct fid& other, std::uint64_t flags) {
  if (other.fclass == FI_CLASS_EP || other.fclass == FI_CLASS_SEP) return 0;
  if (other.fclass != FI_CLASS_CNTR) return -FI_EINVAL;
  if ((flags & ~(FI_REMOTE_READ | FI_REMOTE_WRITE)) != 0) return -FI_EBADFLAGS;
  Locked locked(domain_.lock());
  auto& counter = object_of<Counter, fid_cntr>(&other);
  if (&counter.domain() != &domain_) return -FI_EDOMAIN;
  if (!counters_.any()) domain_.regions().begin_counting(*this);
  counters_.bind(counter, flags != 0 ? flags : FI_REMOTE_WRITE);
  domain_.regions().add_counter(counter);
  return 0;
}

void MemoryRegion::begin_counting(const Context& context) {
  counted_[&context] = context.remote_use(key);
}

void MemoryRegion::count_use(const Context& context) {
  if (counters_.any()) counters_.count(context.remote_use(key), counted_[&context]);
}

void RemoteAccessCounters::bind(Counter& counter, std::uint64_t kinds) {
  if ((kinds & FI_REMOTE_READ) != 0) reads_ = &counter;
  if ((kinds & FI_REMOTE_WRITE) != 0) writes_ = &counter;
}

bool RemoteAccessCounters::counts_any(std::uint64_t kinds) const {
  return ((kinds & FI_REMOTE_READ) != 0 && reads_ != nullptr) ||
         ((kinds & FI_REMOTE_WRITE) != 0 && writes_ != nullptr);
}

void RemoteAccessCounters::forget(const Counter& counter) {
  if (reads_ == &counter) reads_ = nullptr;
  if (writes_ == &counter) writes_ = nullptr;
}

void RemoteAccessCounters::count(const RemoteUse& now, RemoteUse& before) const {
  if (reads_ != nullptr) reads_->count_many(now.reads - before.reads);
  if (writes_ != nullptr) writes_->count_many(now.writes - before.writes);
  before = now;
}

void Regions::add(MemoryRegion& region) {
  by_key_[region.key] = &region;
  for (const Reached& endpoint : endpoints_) {
    endpoint.context->register_region(region.key, region.bytes(), region.access());
  }
}

void Regions::remove(const MemoryRegion& region) {
  by_key_.erase(region.key);
  for (const Reached& endpoint : endpoints_) endpoint.context->unregister_region(region.key);
  drop_idle_counters();
}

bool Regions::counts(const Counter& counter) const {
  return std::any_of(by_key_.begin(), by_key_.end(),
                     [&](const auto& one) { return one.second->counts(counter); });
}

// Endpoints stay attached to such a counter until it is closed.
void Regions::drop_idle_counters() {
  std::erase_if(counters_, [&](const Counter* counter) { return !counts(*counter); });
}

void Regions::open_to(Context& context, EndpointBinding& binding) {
  endpoints_.push_back({&context, &binding});
  for (const auto& [key, region] : by_key_) {
    context.register_region(key, region->bytes(), region->access());
  }
  for (Counter* counter : counters_) binding.attach(*counter);
}

void Regions::close_to(Context& context) {
  std::erase_if(endpoints_, [&](const Reached& one) { return one.context == &context; });
  for (const auto& [key, region] : by_key_) {
    region->forget(context);
    context.unregister_region(key);
  }
}

void Regions::remove_counter(const Counter& counter) {
  std::erase(counters_, &counter);
  for (const auto& [key, region] : by_key_) region->forget(counter);
}

void Regions::add_counter(Counter& counter) {
  counters_.push_back(&counter);
  for (const Reached& endpoint : endpoints_) endpoint.binding->attach(counter);
}

void Regions::begin_counting(MemoryRegion& region) const {
  for (const Reached& endpoint : endpoints_) region.begin_counting(*endpoint.context);
}

void Regions::count_each_use(const Context& context) {
  for (const auto& [key, region] : by_key_) region->count_use(context);
}

fi_ops_mr& registration_operations() {
  static fi_ops_mr table{.size = sizeof(fi_ops_mr),
                         .reg = register_bytes,
                         .regv = register_segments,
                         .regattr = register_attributes};
  return table;
}

}  // namespace pullman::ofi
