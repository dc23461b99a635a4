// The messages of the side channel (side_channel.h):
//
//   question  version 8, number 64, rank that sends it 32, size of the world 32,
//             a bit for each rank that is asked already
//   answer    version 8, number 64, rank that it is about 32, summary (summary.h)
//
// At the door a visitor asks with the same message, whose number and rank are nothing, and is
// answered with answers. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "world/bytes.h"

namespace pullman::world {

// Processes of larger worlds are not asked.
inline constexpr unsigned kMaxAskedSize = 65536;

// A set of ranks.
class RankSet {
 public:
  explicit RankSet(unsigned size = 0) : size_(size), bits_(bytes_for(size)) {}

  static constexpr std::size_t bytes_for(std::uint32_t size) {
    return size / 8 + (size % 8 != 0 ? 1 : 0);
  }

  unsigned size() const { return size_; }
  bool contains(unsigned rank) const {
    return rank < size_ && (std::to_integer<unsigned>(bits_[rank / 8]) >> rank % 8 & 1) != 0;
  }
  void insert(unsigned rank) {
    if (rank < size_) bits_[rank / 8] |= std::byte{1} << rank % 8;
  }
  std::span<std::byte> bytes() { return bits_; }
  std::span<const std::byte> bytes() const { return bits_; }

 private:
  unsigned size_;
  std::vector<std::byte> bits_;
};

struct Question {
  std::uint64_t number = 0;
  std::uint32_t rank = 0;
  RankSet asked{};
};

struct Answer {
  std::uint64_t number = 0;
  std::uint32_t rank = 0;
  Bytes summary{};
};

inline constexpr std::size_t kMaxQuestionBytes = 1 + 8 + 4 + 4 + kMaxAskedSize / 8;

Bytes encode(const Question& question);
std::optional<Question> decode_question(std::span<const std::byte> bytes);
Bytes encode(const Answer& answer);
// Does not look into the summary.
std::optional<Answer> decode_answer(std::span<const std::byte> bytes);

}  // namespace pullman::world
