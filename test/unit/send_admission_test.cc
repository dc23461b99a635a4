#include "message/tx/send_admission.h"

#include <catch2/catch.hpp>

namespace pullman::message {
namespace {

constexpr MessageId kFirst = (MessageId{2} << 32) - 2;
constexpr std::uint32_t kEagerLimit = 4096;
constexpr std::uint64_t kAllowance = 64 * 1024;

// The admission of a peer with that allowance.
struct Known {
  explicit Known(std::uint64_t allowance = kAllowance) {
    admission.handle_hello(allowance, kEagerLimit);
  }

  Pool<IdBitmap> bitmaps{1};
  SendAdmission admission{kFirst};
};

}  // namespace

TEST_CASE("ids follow each other from the first one on") {
  Known peer;

  CHECK(peer.admission.admit(0, 8) == kFirst);
  CHECK(peer.admission.admit(0, 8) == kFirst + 1);
  CHECK(peer.admission.next_id() == kFirst + 2);
}

TEST_CASE("a frame's short id is expanded only to an id that was given out, across the wrap") {
  Known peer;
  for (int i = 0; i < 3; ++i) peer.admission.admit(0, 8);

  CHECK(peer.admission.id_of(low32(kFirst)) == kFirst);
  CHECK(peer.admission.id_of(low32(kFirst + 2)) == kFirst + 2);
  CHECK_FALSE(peer.admission.id_of(low32(kFirst + 3)));
}

TEST_CASE("no id is given beyond the window until its first message has begun to arrive") {
  Known peer(1 << 30);
  auto& admission = peer.admission;
  for (std::size_t i = 0; i < kIdWindow; ++i) {
    REQUIRE(admission.has_id(admission.next_id()));
    admission.admit(0, 8);
  }
  CHECK_FALSE(admission.has_id(admission.next_id()));

  admission.note_begun(kFirst + 1, peer.bitmaps);
  CHECK_FALSE(admission.has_id(admission.next_id()));

  admission.note_begun(kFirst, peer.bitmaps);
  CHECK(admission.has_id(admission.next_id()));
  CHECK(peer.bitmaps.in_use() == 0);
}

TEST_CASE("no id is given too far from the oldest message that is not finished") {
  Known peer;

  CHECK(peer.admission.has_id(kFirst - (kIdsToOldest - 1)));
  CHECK_FALSE(peer.admission.has_id(kFirst - kIdsToOldest));
}

TEST_CASE("a message reported as begun twice counts once") {
  Known peer;
  peer.admission.admit(0, 8);
  CHECK_FALSE(peer.admission.have_all_begun());

  peer.admission.note_begun(kFirst, peer.bitmaps);
  peer.admission.note_begun(kFirst, peer.bitmaps);

  CHECK(peer.admission.has_begun(kFirst));
  CHECK(peer.admission.have_all_begun());
}

TEST_CASE("whole messages leave a part of the allowance to envelopes and short messages") {
  Known peer;
  auto& admission = peer.admission;
  constexpr std::uint64_t kSize = 1000;
  while (admission.affords(0, kSize)) admission.admit(0, kSize);
  while (admission.affords_whole(0, 8)) admission.admit(0, 8);

  CHECK(admission.affords_envelope(0));
  CHECK_FALSE(admission.affords(0, kSize));
  CHECK(admission.affords(0, 8));
  std::size_t envelopes = 0;
  for (; admission.affords_envelope(0); ++envelopes) admission.admit_envelope(0);
  CHECK(envelopes >= kAllowance / kReservedPart / kMessageCharge);

  SECTION("the receiver's ALLOWANCE lets them leave again") {
    admission.handle_allowance(2 * kAllowance, 2 * kAllowance);
    CHECK(admission.affords(0, kSize));
    CHECK(admission.limit() == 2 * kAllowance);
  }
  SECTION("an ALLOWANCE that is late changes nothing") {
    admission.handle_allowance(kAllowance / 2, kAllowance / 2);
    CHECK(admission.limit() == kAllowance);
    CHECK_FALSE(admission.affords(0, kSize));
  }
}

TEST_CASE("before the peer's HELLO only the least allowance may be spent") {
  SendAdmission admission(kFirst);

  CHECK_FALSE(admission.knows_peer());
  std::uint64_t spent = 0;
  while (admission.affords(0, 8)) {
    admission.admit(0, 8);
    spent += kShortCharge;
  }
  CHECK(spent == kLeastAllowance);
}

TEST_CASE("an answer costs no allowance, since the peer asked for it") {
  Known peer;
  auto& admission = peer.admission;
  while (admission.affords(0, 8)) admission.admit(0, 8);

  CHECK(admission.affords(wire::kind_of(wire::Class::kAnswer), 1 << 20));
}

}  // namespace pullman::message
