#include "message/match/matcher_table.h"

namespace pullman::message {

std::size_t MatcherTable::receives_posted() const {
  std::size_t posted = 0;
  for_each([&](const Matcher& matcher) { posted += matcher.posted(); });
  return posted;
}

std::size_t MatcherTable::receives_of_program() const {
  const Matcher* const own = others_.find(kSpaces - 1);
  return receives_posted() - (own == nullptr ? 0 : own->posted());
}

bool MatcherTable::any_receive_from(PeerId peer) const {
  bool any = false;
  for_each([&](const Matcher& matcher) { any = any || matcher.posted_for(peer) != nullptr; });
  return any;
}

std::size_t MatcherTable::fail_receives(PeerId from, Status why) {
  std::size_t failed = 0;
  for_each([&](Matcher& matcher) {
    while (Request* posted = matcher.posted_for(from)) {
      matcher.remove(*posted);
      Operation::of(*posted).finish(why, 0);
      ++failed;
    }
  });
  return failed;
}

void MatcherTable::fail_all_receives(Status why) {
  for_each([&](Matcher& matcher) {
    while (Request* posted = matcher.any_posted()) {
      matcher.remove(*posted);
      Operation::of(*posted).finish(why, 0);
    }
  });
}

}  // namespace pullman::message
