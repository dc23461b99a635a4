#include "failover/rail_news.h"

#include <limits>
#include <utility>

namespace pullman::failover {

void RailNews::handle_change(Note& note, bool carries) {
  if (note.carries == carries) return;
  note.carries = carries;
  if (note.changes < std::numeric_limits<std::uint32_t>::max()) ++note.changes;
  if (has_news(note)) return;
  note.since = ++noted_;
  notes_.push_back(note);
}

std::uint32_t RailNews::take(Note& note) {
  note.hook.unlink();
  return std::exchange(note.changes, 0);
}

}  // namespace pullman::failover
