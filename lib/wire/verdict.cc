#include "wire/verdict.h"

namespace pullman::wire {

const char* name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kAccepted:
      return "accepted";
    case Verdict::kDuplicate:
      return "duplicate";
    case Verdict::kTooShort:
      return "too short";
    case Verdict::kBadVersion:
      return "bad version";
    case Verdict::kBadType:
      return "bad type";
    case Verdict::kBadLength:
      return "bad length";
    case Verdict::kBadReserved:
      return "bad reserved bits";
    case Verdict::kBadChecksum:
      return "bad checksum";
    case Verdict::kBadFrame:
      return "bad frame";
    case Verdict::kUnknownConnection:
      return "unknown connection";
    case Verdict::kBadAck:
      return "bad ack";
    case Verdict::kOutsideWindow:
      return "outside window";
    case Verdict::kOverLimit:
      return "over limit";
    case Verdict::kWrongState:
      return "wrong state";
    case Verdict::kOtherProtection:
      return "other protection";
    case Verdict::kNotAuthentic:
      return "not authentic";
  }
  return "?";
}

}  // namespace pullman::wire
