// An environment variable that is set, or not there, for one test.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace pullman {

class Variable {
 public:
  Variable(const char* name, const char* value) : Variable(name) { setenv(name, value, 1); }
  // It is not there.
  explicit Variable(const char* name) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    unsetenv(name);
  }
  ~Variable() {
    unsetenv(name_);
    if (before_) setenv(name_, before_->c_str(), 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace pullman
