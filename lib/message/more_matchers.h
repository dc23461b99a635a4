// The matching of the spaces behind the first: each is made when something of it comes, from a peer
// or from the program, since most programs use one or two.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "base/check.h"
#include "message/matcher.h"
#include "pullman/operations.h"

namespace pullman::message {

class MoreMatchers {
 public:
  // 0 < space < kSpaces. Throws std::bad_alloc.
  Matcher& of(std::uint8_t space) {
    PULLMAN_DCHECK(space > 0 && space < kSpaces);
    std::unique_ptr<Matcher>& matcher = matchers_[space];
    if (matcher == nullptr) [[unlikely]]
      matcher = std::make_unique<Matcher>();
    return *matcher;
  }

  // Those that have been made.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const auto& matcher : matchers_) {
      if (matcher != nullptr) visit(*matcher);
    }
  }

 private:
  std::array<std::unique_ptr<Matcher>, kSpaces> matchers_;
};

}  // namespace pullman::message
