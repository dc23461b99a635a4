#include "plan.h"

#include <cmath>
#include <cstring>

namespace soak {

namespace {

constexpr std::uint64_t kTags = 12;
constexpr std::size_t kSmall = 4096;
constexpr std::uint64_t kLargePercent = 3;

// Every order of magnitude as likely as another.
std::size_t log_uniform(Dice& dice, std::size_t least, std::size_t most) {
  const double low = std::log(static_cast<double>(least) + 1);
  const double high = std::log(static_cast<double>(most) + 1);
  const double share = static_cast<double>(dice.below(1'000'000)) / 1e6;
  return static_cast<std::size_t>(std::exp(low + share * (high - low)) - 1);
}

}  // namespace

std::uint64_t Dice::next() {
  std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

pullman::Tag tag_of_plan(std::uint64_t seed, std::uint64_t which) {
  return Dice(seed ^ (which % kTags + 1)).next();
}

std::vector<Message> make_plan(std::uint64_t seed, std::size_t count, std::size_t largest) {
  Dice dice(seed);
  std::vector<Message> plan;
  for (std::size_t i = 0; i < count; ++i) {
    const bool large = largest > kSmall && dice.below(100) < kLargePercent;
    std::size_t size = large ? log_uniform(dice, kSmall, largest)
                             : log_uniform(dice, 0, largest < kSmall ? largest : kSmall);
    if (i == 0) size = 0;
    if (i == 1) size = largest;
    plan.push_back({tag_of_plan(seed, dice.below(kTags)), size, dice.next()});
  }
  return plan;
}

void write_contents(const Message& message, std::span<std::byte> bytes) {
  Dice dice(message.seed);
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    const std::uint64_t word = dice.next();
    std::memcpy(bytes.data() + at, &word, bytes.size() - at < 8 ? bytes.size() - at : 8);
  }
}

std::uint64_t hash_of(std::span<const std::byte> bytes) {
  std::uint64_t hash = 0xCBF29CE484222325u ^ bytes.size();
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, bytes.size() - at < 8 ? bytes.size() - at : 8);
    hash = (hash ^ word) * 0x100000001B3u;
    hash ^= hash >> 29;
  }
  return hash;
}

std::uint64_t hash_of_contents(const Message& message) {
  std::vector<std::byte> bytes(message.size);
  write_contents(message, bytes);
  return hash_of(bytes);
}

}  // namespace soak
