#include "context/descriptors.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "pullman/status.h"

namespace pullman {
namespace {

constexpr std::size_t kFewest = 12;  // with one NIC and the driver udp

}  // namespace

void require_descriptors() {
  std::vector<int> opened;
  int error = 0;
  while (opened.size() < kFewest && error == 0) {
    const int descriptor = eventfd(0, EFD_CLOEXEC);
    if (descriptor >= 0) {
      opened.push_back(descriptor);
    } else {
      error = errno;
    }
  }
  for (const int descriptor : opened) close(descriptor);
  if (error == EMFILE || error == ENFILE) {
    throw Error(Status::kNoDevice,
                fmt::format("this process may open {} descriptors more, and a context needs {} at "
                            "least: raise the limit (ulimit -n)",
                            opened.size(), kFewest));
  }
}

}  // namespace pullman
