#include "launch/pmi_process.h"

#include <link.h>

#include <cstddef>
#include <string_view>

namespace pullman::launch {

bool has_mpi() {
  const auto is_mpi = [](dl_phdr_info* object, std::size_t, void*) -> int {
    const std::string_view path(object->dlpi_name);
    return path.substr(path.rfind('/') + 1).starts_with("libmpi") ? 1 : 0;
  };
  return dl_iterate_phdr(is_mpi, nullptr) != 0;
}

}  // namespace pullman::launch
