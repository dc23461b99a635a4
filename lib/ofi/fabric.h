// The fabric: event queues and wait sets belong to it, and domains are opened from it.
#pragma once

#include <rdma/fabric.h>

#include <atomic>
#include <cstdint>

namespace pullman::ofi {

int open_fabric(fi_fabric_attr* attributes, fid_fabric** out, void* context);

class Fabric : public fid_fabric {
 public:
  Fabric(const fi_fabric_attr& attributes, void* context);

  static Fabric& from(fid_fabric* handle) { return static_cast<Fabric&>(*handle); }

  // Counts the objects that keep it from being closed.
  void hold() { ++holders_; }
  void release() { --holders_; }
  bool held() const { return holders_ != 0; }

 private:
  std::atomic<std::size_t> holders_ = 0;
};

}  // namespace pullman::ofi
