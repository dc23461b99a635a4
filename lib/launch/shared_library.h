// A shared library that is loaded when it is needed, and stays: what it has begun may go on behind
// us, until the process ends.
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

namespace pullman::launch {

class SharedLibrary {
 public:
  explicit SharedLibrary(const char* name) : handle_(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {}

  // Sets `out` to the function with that name. Returns false if there is none.
  template <typename Function>
  bool find(const char* name, Function*& out) const {
    out = handle_ == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(handle_, name));
    return out != nullptr;
  }

 private:
  void* handle_;
};

// Has `Last`, a lambda without captures, called when this process exits. A child that it forks, and
// that exits, has no part in the conversation with the launcher.
template <typename Last>
void at_exit_of_this_process(Last) {
  static const pid_t self = getpid();
  std::atexit([] {
    if (getpid() == self) Last()();
  });
}

}  // namespace pullman::launch
