// A bitmap over a sliding window of N consecutive 64-bit numbers: number n has bit n mod N.
// Indexing is masked inside, so a caller cannot index it out of range.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace pullman {

template <std::size_t N>
class SlidingBitmap {
  static_assert(std::has_single_bit(N) && N >= 64);

 public:
  bool test(std::uint64_t n) const { return (word(n) >> (n & 63)) & 1; }
  void set(std::uint64_t n) { words_[index(n)] |= std::uint64_t{1} << (n & 63); }
  void clear(std::uint64_t n) { words_[index(n)] &= ~(std::uint64_t{1} << (n & 63)); }

  // Returns the whole 64-bit word that contains n.
  std::uint64_t word(std::uint64_t n) const { return words_[index(n)]; }

  // Clears the leading set bits from `n` on and returns the first number whose bit is not set.
  std::uint64_t pop_run(std::uint64_t n) {
    for (;;) {
      const unsigned shift = n & 63;
      const auto run = static_cast<unsigned>(std::countr_one(word(n) >> shift));
      if (run == 0) return n;
      const std::uint64_t mask = run == 64 ? ~std::uint64_t{0} : ((std::uint64_t{1} << run) - 1);
      words_[index(n)] &= ~(mask << shift);
      n += run;
      if (run + shift < 64) return n;
    }
  }

  void reset() { words_.fill(0); }

 private:
  static constexpr std::size_t index(std::uint64_t n) { return (n & (N - 1)) >> 6; }

  std::array<std::uint64_t, N / 64> words_{};
};

}  // namespace pullman
