#include "message/tx/ack_requester.h"

#include <catch2/catch.hpp>

namespace pullman::message {
namespace {

constexpr std::uint32_t kMany = AckRequester::kPacketsPerRequest;
constexpr std::uint32_t kManyIfShort = AckRequester::kPacketsPerRequestIfShort;

}  // namespace

TEST_CASE("a packet whose ACK a send waits for asks for it") {
  AckRequester acks;

  CHECK(acks.note_packet(true));
  CHECK_FALSE(acks.note_packet(false));
}

TEST_CASE("of packets whose ACK no send waits for, one in 64 asks for it") {
  AckRequester acks;

  for (std::uint32_t i = 1; i < kMany; ++i) REQUIRE_FALSE(acks.note_packet(false));
  CHECK(acks.note_packet(false));
  CHECK_FALSE(acks.note_packet(false));
}

TEST_CASE("an ACK that arrives puts off the next request for one") {
  AckRequester acks;
  for (std::uint32_t i = 1; i < kMany; ++i) acks.note_packet(false);

  acks.handle_ack();

  CHECK_FALSE(acks.note_packet(false));
}

TEST_CASE("the last chunk of an awaited message asks for its ACK if nothing is left to be cut") {
  AckRequester acks;

  CHECK_FALSE(acks.note_chunks({.count = 4, .are_awaited = true, .more_follow = true}));
  CHECK(acks.note_chunks({.count = 1, .end_message = true, .are_awaited = true}));
}

TEST_CASE("the last message cut behind an awaited one asks for the ACK") {
  AckRequester acks;
  CHECK_FALSE(acks.note_chunks(
      {.count = 4, .end_message = true, .are_awaited = true, .more_follow = true}));

  SECTION("though no send waits for that message") {
    CHECK(acks.note_chunks({.count = 4, .end_message = true}));
    CHECK_FALSE(acks.note_chunks({.count = 4, .end_message = true}));
  }
  SECTION("though a packet of copied messages has asked meanwhile, on whichever rail") {
    CHECK(acks.note_packet(true));
    CHECK(acks.note_chunks({.count = 4, .end_message = true}));
  }
}

TEST_CASE("the end of a message that no send waits for asks for an ACK only after many packets") {
  AckRequester acks;

  CHECK_FALSE(acks.note_chunks({.count = kMany - 2, .end_message = true}));
  CHECK_FALSE(acks.note_chunks({.count = 1, .end_message = true, .more_follow = true}));
  CHECK(acks.note_chunks({.count = 1, .end_message = true, .more_follow = true}));
}

TEST_CASE("the middle of a message asks for an ACK only while the packet pool is short") {
  AckRequester acks;

  CHECK_FALSE(acks.note_chunks({.count = 1000, .more_follow = true}));
  CHECK(acks.note_chunks({.count = 1, .more_follow = true, .pool_is_short = true}));
  CHECK_FALSE(
      acks.note_chunks({.count = kManyIfShort - 1, .more_follow = true, .pool_is_short = true}));
  CHECK(acks.note_chunks({.count = 1, .more_follow = true, .pool_is_short = true}));
}

}  // namespace pullman::message
