// The verdict on one received packet. A packet with any verdict but kAccepted and kDuplicate is
// noise or hostile: it is counted by its verdict and dropped before any peer state is touched
// (wire.md 1.3).
#pragma once

#include <cstddef>
#include <cstdint>

namespace pullman::wire {

enum class Verdict : std::uint8_t {
  kAccepted,           // processed
  kDuplicate,          // a packet number seen before, or settled: acknowledged, otherwise ignored
  kTooShort,           // shorter than a header, or truncated by the NIC
  kBadVersion,         // another wire version
  kBadType,            // unknown packet type
  kBadLength,          // header's length differs from the datagram's
  kBadReserved,        // reserved bits set
  kBadChecksum,        // checksum missing although required, or wrong
  kBadFrame,           // a frame that is unknown, overruns the packet or contradicts itself
  kUnknownConnection,  // no such connection index, or its proof bits differ
  kBadAck,             // acknowledges a packet that was never sent
  kOutsideWindow,      // packet number or message id beyond the window
  kOverLimit,          // beyond a limit of ours: allowance, grant, half-open peers
  kWrongState,         // not expected in the peer's state
  kOtherProtection,    // protected otherwise than here, or not at all (wire.md 12)
  kNotAuthentic,       // not sealed with our key, or changed since
};
inline constexpr std::size_t kVerdicts = static_cast<std::size_t>(Verdict::kNotAuthentic) + 1;

const char* name(Verdict verdict);

}  // namespace pullman::wire
