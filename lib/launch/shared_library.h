// A shared library that is loaded when it is needed, and stays: what it has begun may go on behind
// us.
#pragma once

#include <dlfcn.h>

namespace pullman::launch {

class SharedLibrary {
 public:
  // Its own plug-ins may look for its symbols, so those are there for all.
  explicit SharedLibrary(const char* name) : handle_(dlopen(name, RTLD_NOW | RTLD_GLOBAL)) {}

  // Sets `out` to the function with that name. Returns false if there is none.
  template <typename Function>
  bool find(const char* name, Function*& out) const {
    out = handle_ == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(handle_, name));
    return out != nullptr;
  }

 private:
  void* handle_;
};

}  // namespace pullman::launch
