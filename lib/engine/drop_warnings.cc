#include "engine/drop_warnings.h"

#include "base/log.h"

namespace pullman::engine {
namespace {

const char* words_for(wire::Protection protection) {
  switch (protection) {
    case wire::Protection::kOff:
      return "not protected";
    case wire::Protection::kAuthenticate:
      return "authenticated";
    case wire::Protection::kEncrypt:
      return "encrypted";
  }
  return "?";
}

}  // namespace

void warn_of_drop(wire::Verdict why, wire::Protection own) {
  switch (why) {
    case wire::Verdict::kBadVersion:
      return log().warn(
          "packets of another version of the protocol come here, and are dropped: all processes of "
          "a job need the same version of Pullman");
    case wire::Verdict::kOtherProtection:
      return log().warn(
          "packets come here that are protected in another way, and are dropped: ours are {}. "
          "PULLMAN_SECURITY must be the same in a whole job",
          words_for(own));
    case wire::Verdict::kNotAuthentic:
      return log().warn(
          "packets come here that were sealed with another key than this job's, and are dropped. "
          "Is PULLMAN_KEY_FILE the same everywhere?");
    default:
      return;
  }
}

}  // namespace pullman::engine
