#include "nic/error_report.h"

#include <rdma/fi_errno.h>

#include "base/log.h"

namespace pullman::nic {
namespace {

// Such errors are normal when peers come and go: packets to them are answered so.
bool is_everyday(ErrorClass kind) {
  return kind == ErrorClass::kTimeout || kind == ErrorClass::kRemote;
}

}  // namespace

void ErrorReport::tell(const ErrorCounts& errors) {
  for (std::size_t i = 0; i < kErrorClasses; ++i) {
    const auto kind = static_cast<ErrorClass>(i);
    if ((errors.seen() & ~told_ & ErrorCounts::bit(kind)) == 0) continue;
    log().log(is_everyday(kind) ? spdlog::level::info : spdlog::level::warn,
              "{}: error of class '{}': {}; later ones are only counted", who_, name(kind),
              fi_strerror(errors.of(kind).last));
  }
  told_ = errors.seen();
}

}  // namespace pullman::nic
