// What one side of a soak sends: derived from a seed, so that the other side knows it, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pullman/types.h"

namespace soak {

struct Message {
  pullman::Tag tag = 0;
  std::size_t size = 0;
  std::uint64_t seed = 0;  // of the contents
};

// `count` messages: random tags out of a few, so that order within a tag means something; sizes
// mostly small, a few up to `largest`. The first is empty and the second as large as they get.
std::vector<Message> make_plan(std::uint64_t seed, std::size_t count, std::size_t largest);

// One of the tags a plan with this seed uses.
pullman::Tag tag_of_plan(std::uint64_t seed, std::uint64_t which);

void write_contents(const Message& message, std::span<std::byte> bytes);
std::uint64_t hash_of(std::span<const std::byte> bytes);
std::uint64_t hash_of_contents(const Message& message);

// SplitMix64.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }

 private:
  std::uint64_t state_;
};

}  // namespace soak
