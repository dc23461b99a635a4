// A domain: what the endpoints, queues, address vectors and regions of one application share: one
// lock, one way of making progress, one address format.
#pragma once

#include <rdma/fi_domain.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "crypto/secret.h"
#include "ofi/lock.h"
#include "ofi/memory_region.h"
#include "ofi/progress_thread.h"
#include "ofi/triggers.h"

namespace pullman::ofi {

class Fabric;

class Domain : public fid_domain {
 public:
  static int open(fid_fabric* fabric, fi_info* info, fid_domain** out, void* context);
  ~Domain();

  static Domain& from(fid_domain* handle) { return static_cast<Domain&>(*handle); }

  Lock& lock() { return lock_; }
  std::uint32_t api_version() const { return api_version_; }
  std::uint32_t address_format() const { return address_format_; }
  // The job's key that its endpoints use unless they have one of their own; else the environment's.
  const std::optional<crypto::Secret<32>>& job_key() const { return job_key_; }
  Regions& regions() { return regions_; }
  Triggers& triggers() { return triggers_; }
  ProgressThread& progress_thread() { return thread_; }

  // Counts the objects that keep it from being closed.
  void hold() { ++holders_; }
  void release() { --holders_; }
  bool held() const { return holders_ != 0; }

 private:
  Domain(Fabric& fabric, const fi_info& info, void* context);

  Fabric& fabric_;
  Lock lock_;
  const std::uint32_t api_version_;
  const std::uint32_t address_format_;
  const std::optional<crypto::Secret<32>> job_key_;
  Regions regions_;
  Triggers triggers_;
  std::atomic<std::size_t> holders_ = 0;
  ProgressThread thread_;
};

}  // namespace pullman::ofi
