// The entry point that libfabric finds in libpullman-fi.so.
#include "ofi/provider.h"

#include "ofi/fabric.h"
#include "ofi/info.h"
#include "ofi/settings.h"

namespace pullman::ofi {
namespace {

void clean_up() {}

}  // namespace

fi_provider& provider() {
  static fi_provider one{.version = FI_VERSION(0, 1),
                         .fi_version = fi_version(),
                         .context = {},
                         .name = kName,
                         .getinfo = get_info,
                         .fabric = open_fabric,
                         .cleanup = clean_up};
  return one;
}

}  // namespace pullman::ofi

extern "C" [[gnu::visibility("default")]] fi_provider* fi_prov_ini() {
  pullman::ofi::define_settings(pullman::ofi::provider());
  return &pullman::ofi::provider();
}
