// The matching of the spaces behind the first: each is made when something of it comes, from a peer
// or from the program, since most programs use one or two.
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
  // 0 < space < kSpaces, of all. Null: nothing of it has come.
  Matcher* find(std::uint8_t space) const {
    PULLMAN_DCHECK(space > 0 && space < kSpaces);
    return matchers_[space].get();
  }

  // From now on it is there. False: there is no memory for it.
  bool make(std::uint8_t space) noexcept {
    PULLMAN_DCHECK(space > 0 && space < kSpaces);
    std::unique_ptr<Matcher>& matcher = matchers_[space];
    if (matcher == nullptr) [[unlikely]]
      matcher.reset(new (std::nothrow) Matcher);
    return matcher != nullptr;
  }

  // Those that have been made.
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
