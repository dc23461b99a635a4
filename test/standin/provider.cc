// The provider's entry points for libfabric: its name, its NICs, its fabric.
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>

#include "standin/domain.h"
#include "standin/variant.h"

namespace pullman::standin {
namespace {

// Requires room for the prefix and registered memory.
bool suits(const fi_info* hints) {
  if (hints == nullptr || hints->ep_attr == nullptr) return false;
  if (hints->ep_attr->type != FI_EP_UNSPEC && hints->ep_attr->type != FI_EP_DGRAM) return false;
  if ((hints->mode & FI_MSG_PREFIX) == 0) return false;
  if ((hints->caps & ~(FI_MSG | FI_SEND | FI_RECV)) != 0) return false;
  return hints->domain_attr != nullptr && (hints->domain_attr->mr_mode & FI_MR_LOCAL) != 0;
}

int get_info(std::uint32_t, const char*, const char*, std::uint64_t, const fi_info* hints,
             fi_info** out) {
  if (!suits(hints)) return -FI_ENODATA;
  *out = describe(chosen_variant());
  return *out != nullptr ? 0 : -FI_ENOMEM;
}

void clean_up() {}

}  // namespace
}  // namespace pullman::standin

extern "C" [[gnu::visibility("default")]] fi_provider* fi_prov_ini() {
  static fi_provider provider{.version = FI_VERSION(1, 0),
                              .fi_version = fi_version(),
                              .context = {},
                              .name = "standin",
                              .getinfo = pullman::standin::get_info,
                              .fabric = pullman::standin::open_fabric,
                              .cleanup = pullman::standin::clean_up};
  return &provider;
}
