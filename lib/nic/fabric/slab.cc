#include "nic/fabric/slab.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>

#include "base/aligned_bytes.h"
#include "nic/port.h"

namespace pullman::nic::fabric {
namespace {

constexpr std::size_t kPage = 4096;

std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

void Slab::FreeMemory::operator()(std::byte* memory) const {
  std::free(memory);
}

Slab::Slab(const Options& options)
    : slot_bytes_(options.slot_bytes),
      stride_(whole_lines(options.slot_bytes)),
      contexts_(options.slots) {
  const std::size_t bytes = round_up(stride_ * options.slots, kPage);
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kPage, bytes)));
  if (memory_ == nullptr) {
    throw NicError(fmt::format("no memory for {} packets of {} bytes on {}; ask for fewer",
                               options.slots, options.slot_bytes, options.device));
  }
  if (!options.registered) return;
  fid_mr* registration = nullptr;
  const int result = fi_mr_reg(options.domain, memory_.get(), bytes, options.access, 0, 0, 0,
                               &registration, nullptr);
  if (result == -FI_ENOMEM || result == -FI_EPERM) {
    throw NicError(
        fmt::format("cannot register {} bytes with {}: {}; raise the limit of locked memory "
                    "(ulimit -l) or ask for fewer packets",
                    bytes, options.device, fi_strerror(-result)));
  }
  require_ok(result, "register packet memory", options.device);
  registration_.reset(registration);
  descriptor_ = fi_mr_desc(registration);
}

}  // namespace pullman::nic::fabric
