// Memory that is given back is used again: from a pool that keeps what it has, for who allocates
// with every message. The address sanitizer sees each allocation by itself.
#pragma once

#include <memory_resource>

namespace pullman {

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define PULLMAN_EACH_BY_ITSELF
#endif
#endif

class ReusedMemory {
 public:
#if defined(PULLMAN_EACH_BY_ITSELF) || defined(__SANITIZE_ADDRESS__)
  std::pmr::memory_resource& resource() {
    return *std::pmr::new_delete_resource();
  }
#else
  std::pmr::memory_resource& resource() {
    return pool_;
  }

 private:
  // Larger pieces are allocated as they come.
  static constexpr std::pmr::pool_options kOptions{.max_blocks_per_chunk = 64,
                                                   .largest_required_pool_block = 2048};
  std::pmr::unsynchronized_pool_resource pool_{kOptions};
#endif
};

}  // namespace pullman
