// What worlds are made of: the tree, cards, places in the environment, sentences.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "pullman/status.h"
#include "world/card.h"
#include "world/names.h"
#include "world/place.h"
#include "world/tree.h"

namespace pullman::world {
namespace {

nic::Address address(const char* text) {
  std::string why;
  return nic::parse(text, 0, why).value();
}

// Variables that are as before at the end.
class Environment {
 public:
  Environment() {
    for (const char* const name : kNames) {
      const char* const value = std::getenv(name);
      before_.emplace_back(value == nullptr ? "" : value);
      unsetenv(name);
    }
  }
  ~Environment() {
    for (std::size_t i = 0; i < before_.size(); ++i) {
      before_[i].empty() ? unsetenv(kNames[i]) : setenv(kNames[i], before_[i].c_str(), 1);
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  static constexpr const char* kNames[] = {
      "PULLMAN_RANK",         "PULLMAN_SIZE",         "SLURM_PROCID", "SLURM_NTASKS",
      "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK",     "PMI_SIZE"};
  std::vector<std::string> before_;
};

}  // namespace

TEST_CASE("whatever the root, each process has one parent, and gets what the root sends once") {
  for (unsigned size = 1; size <= 257; ++size) {
    for (const unsigned root : {0U, size / 3, size - 1}) {
      const Tree tree(size, root);
      std::vector<unsigned> reached = {root};
      for (std::size_t i = 0; i < reached.size(); ++i) {
        const auto children = tree.children(reached[i]);
        REQUIRE(children.size() <= Tree::kArity);
        for (const unsigned child : children) {
          REQUIRE(tree.parent(child) == reached[i]);
          REQUIRE_FALSE(tree.is_root(child));
          reached.push_back(child);
        }
      }
      std::sort(reached.begin(), reached.end());
      std::vector<unsigned> all(size);
      std::iota(all.begin(), all.end(), 0U);
      REQUIRE(reached == all);
    }
  }
}

TEST_CASE("a card says every address, in at most 24 bytes each") {
  const Addresses addresses = {address("10.0.0.1:7100"), address("[fd00::1234]:7101")};
  const Bytes card = card_of(addresses, 200);
  CHECK(card.size() == 2 + 8 + 24);
  std::span<const std::byte> in(card);
  CHECK(take_card(in) == addresses);
  CHECK(in.empty());
}

TEST_CASE("a card has the first addresses if there is no room for all") {
  const Addresses addresses(4, address("[fd00::1]:7100"));
  const Bytes card = card_of(addresses, 2 + 24 + 24 + 23);
  std::span<const std::byte> in(card);
  CHECK(take_card(in).size() == 2);
}

TEST_CASE("a card that is cut, or of another version, is refused") {
  const Bytes card = card_of({address("10.0.0.1:7100"), address("10.0.1.1:7100")}, 200);
  for (std::size_t length = 0; length < card.size(); ++length) {
    std::span<const std::byte> in(card.data(), length);
    CHECK_THROWS_AS(take_card(in), Error);
  }
  Bytes other = card;
  other[0] = std::byte{2};
  std::span<const std::byte> in(other);
  CHECK_THROWS_WITH(take_card(in), Catch::Contains("another version"));
  Bytes many = card;
  many[1] = std::byte{kMaxAddresses + 1};
  in = many;
  CHECK_THROWS_AS(take_card(in), Error);
}

TEST_CASE("a place is what the first pair of variables says") {
  const Environment clean;
  CHECK_FALSE(place_in_environment());
  setenv("PMI_RANK", "3", 1);
  CHECK_FALSE(place_in_environment());  // of how many?
  setenv("PMI_SIZE", "4", 1);
  CHECK(place_in_environment()->rank == 3);
  setenv("SLURM_PROCID", "0", 1);  // mpiexec in a job of Slurm's
  setenv("SLURM_NTASKS", "2", 1);
  CHECK(place_in_environment()->size == 4);
  setenv("PULLMAN_RANK", "7", 1);
  CHECK_THROWS_AS(place_in_environment(), Error);
  setenv("PULLMAN_SIZE", "8", 1);
  CHECK(place_in_environment()->rank == 7);
}

TEST_CASE("a place that cannot be is refused") {
  const Environment clean;
  setenv("PULLMAN_SIZE", "2", 1);
  for (const char* const rank : {"2", "-1", "1x", "", " 1"}) {
    setenv("PULLMAN_RANK", rank, 1);
    CHECK_THROWS_AS(place_in_environment(), Error);
  }
}

TEST_CASE("ranks are named, but not without end") {
  CHECK(names_of({4}) == "rank 4");
  CHECK(names_of({4, 7}) == "ranks 4 and 7");
  CHECK(names_of({4, 7, 9}) == "ranks 4, 7 and 9");
  std::vector<unsigned> many(20);
  std::iota(many.begin(), many.end(), 0U);
  CHECK(names_of(many) == "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 12 more");
}

}  // namespace pullman::world
