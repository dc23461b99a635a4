// Equal, cache-aligned slots in one block of memory, registered with the domain when the provider
// asks for it (FI_MR_LOCAL). Each has a context that a provider may write to while its operation is
// posted.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "nic/fabric/handles.h"

namespace pullman::nic::fabric {

class Slab {
 public:
  struct Options {
    std::size_t slots = 0;
    std::size_t slot_bytes = 0;
    fid_domain* domain = nullptr;
    bool registered = false;
    std::uint64_t access = 0;  // FI_SEND or FI_RECV
    std::string device;        // for the error message
  };

  // Throws NicError when the memory cannot be allocated or registered.
  explicit Slab(const Options& options);

  std::size_t slots() const { return contexts_.size(); }
  std::size_t slot_bytes() const { return slot_bytes_; }
  std::byte* slot(std::size_t index) { return memory_.get() + index * stride_; }
  void* descriptor() const { return descriptor_; }
  fi_context2* context(std::size_t index) { return &contexts_[index]; }

  // Returns the slot whose context a completion carries; slots() if it is not ours.
  std::size_t index_of(const void* context) const {
    const auto offset = static_cast<const std::byte*>(context) -
                        reinterpret_cast<const std::byte*>(contexts_.data());
    const auto index = static_cast<std::size_t>(offset) / sizeof(fi_context2);
    return index < slots() ? index : slots();
  }

 private:
  struct FreeMemory {
    void operator()(std::byte* memory) const;
  };

  std::size_t slot_bytes_;
  std::size_t stride_;
  std::unique_ptr<std::byte, FreeMemory> memory_;
  Handle<fid_mr> registration_;
  void* descriptor_ = nullptr;
  std::vector<fi_context2> contexts_;
};

}  // namespace pullman::nic::fabric
