// A pool that reuses freed memory, for code that allocates with every message. Under the address
// sanitizer each allocation is a separate one, so that the sanitizer sees it.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <utility>

namespace pullman {

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define PULLMAN_EACH_BY_ITSELF
#endif
#endif

#if !defined(PULLMAN_EACH_BY_ITSELF) && !defined(__SANITIZE_ADDRESS__)
// Keeps the piece that was freed last. If messages come one by one, the next one asks for the same
// size, and the pool would take some 280 instructions for both calls (tools/steps.py).
class LastPiece final : public std::pmr::memory_resource {
 public:
  explicit LastPiece(std::pmr::memory_resource& pool) : pool_(pool) {}
  ~LastPiece() override { let_go(); }
  LastPiece(const LastPiece&) = delete;
  LastPiece& operator=(const LastPiece&) = delete;

 private:
  static constexpr std::size_t kMaxBytes = 512;

  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (piece_ != nullptr && bytes == bytes_ && alignment == alignment_) [[likely]]
      return std::exchange(piece_, nullptr);
    return pool_.allocate(bytes, alignment);
  }
  void do_deallocate(void* piece, std::size_t bytes, std::size_t alignment) override {
    if (bytes > kMaxBytes) return pool_.deallocate(piece, bytes, alignment);
    let_go();
    piece_ = piece;
    bytes_ = bytes;
    alignment_ = alignment;
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
  void let_go() {
    if (piece_ != nullptr) pool_.deallocate(piece_, bytes_, alignment_);
  }

  std::pmr::memory_resource& pool_;
  void* piece_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t alignment_ = 0;
};
#endif

class ReusedMemory {
 public:
#if defined(PULLMAN_EACH_BY_ITSELF) || defined(__SANITIZE_ADDRESS__)
  std::pmr::memory_resource& resource() {
    return *std::pmr::new_delete_resource();
  }
#else
  std::pmr::memory_resource& resource() {
    return last_;
  }

 private:
  // Larger pieces are allocated without a pool.
  static constexpr std::pmr::pool_options kOptions{.max_blocks_per_chunk = 64,
                                                   .largest_required_pool_block = 2048};
  std::pmr::unsynchronized_pool_resource pool_{kOptions};
  LastPiece last_{pool_};
#endif
};

}  // namespace pullman
