// The matchers of all spaces but space 0. Each is made when a peer or the program first uses its
// space, since most programs use one or two.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <new>

#include "base/check.h"
#include "message/match/matcher.h"
#include "pullman/operations.h"

namespace pullman::message {

class SpaceMatchers {
 public:
  // 0 < space < kSpaces in all calls. Returns null if the space was never used.
  Matcher* find(std::uint8_t space) const {
    PULLMAN_DCHECK(space > 0 && space < kSpaces);
    return matchers_[space].get();
  }

  // Makes the space's matcher unless it exists. Returns false if there is no memory.
  bool make(std::uint8_t space) noexcept {
    PULLMAN_DCHECK(space > 0 && space < kSpaces);
    std::unique_ptr<Matcher>& matcher = matchers_[space];
    if (matcher == nullptr) [[unlikely]]
      matcher.reset(new (std::nothrow) Matcher);
    return matcher != nullptr;
  }

  // Visits the matchers that have been made.
  template <typename Visit>
  void for_each(Visit&& visit) {
    for (const auto& matcher : matchers_) {
      if (matcher != nullptr) visit(*matcher);
    }
  }
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const auto& matcher : matchers_) {
      if (matcher != nullptr) visit(static_cast<const Matcher&>(*matcher));
    }
  }

 private:
  std::array<std::unique_ptr<Matcher>, kSpaces> matchers_;
};

}  // namespace pullman::message
