// Logs the first error of each class of a port. Later ones are only counted (Stats). Without a new
// class it costs a comparison.
#pragma once

#include <cstdint>
#include <string>

#include "nic/error_class.h"
#include "nic/port.h"

namespace pullman::nic {

class ErrorReport {
 public:
  explicit ErrorReport(const Device& device) : who_(device.name + " (" + device.driver + ")") {}

  void look(const ErrorCounts& errors) {
    if (errors.seen() != told_) [[unlikely]]
      tell(errors);
  }

 private:
  void tell(const ErrorCounts& errors);

  std::string who_;
  std::uint8_t told_ = 0;  // a bit for each class
};

}  // namespace pullman::nic
