#include "nic/error_report.h"

#include <rdma/fi_errno.h>

#include "base/log.h"

namespace pullman::nic {
namespace {

// Peers come and go, and what they leave behind is answered so.
bool is_everyday(ErrorClass kind) {
  return kind == ErrorClass::kTimeout || kind == ErrorClass::kRemote;
}

}  // namespace

void ErrorReport::tell(const ErrorCounts& errors) {
  for (std::size_t i = 0; i < kErrorClasses; ++i) {
    const auto kind = static_cast<ErrorClass>(i);
    if ((errors.seen() & ~told_ & ErrorCounts::bit(kind)) == 0) continue;
    log().log(is_everyday(kind) ? spdlog::level::info : spdlog::level::warn,
              "{}: error of class '{}': {}; more of these are counted only", who_, name(kind),
              fi_strerror(errors.of(kind).last));
  }
  told_ = errors.seen();
}

}  // namespace pullman::nic
