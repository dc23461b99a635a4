// Rails that have gone or come since the program asked last.
//
// Bounded by construction: a rail has one note, which its owner keeps beside the rail. A rail that
// goes and comes while nobody asks does so in its note, which says how often; none is lost. Does
// not know how a rail does, nor the engine's rails: it links the notes of those that have changed.
#pragma once

#include <boost/intrusive/list.hpp>
#include <cstdint>

#include "pullman/types.h"

namespace pullman::failover {

class RailNews {
 public:
  // Of one rail. Leaves the list when it is destroyed.
  struct Note {
    PeerId peer;
    std::uint8_t number = 0;    // the rail's
    bool carries = false;       // messages, now
    std::uint32_t changes = 0;  // since it was told
    std::uint64_t since = 0;    // counts the notes: the lesser has waited for longer
    boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>
        hook;
  };

  // The rail carries messages from now on, or no longer does.
  void handle_change(Note& note, bool carries);

  // The one that has waited for longest; null: there is no news. It is for take() or forget().
  Note* oldest() { return notes_.empty() ? nullptr : &notes_.front(); }
  static bool has_news(const Note& note) { return note.hook.is_linked(); }
  // The program is told: how often it has changed.
  static std::uint32_t take(Note& note);
  // Nobody is to hear of it: its peer has ended.
  static void forget(Note& note) { take(note); }

 private:
  using Hook = boost::intrusive::member_hook<Note, decltype(Note::hook), &Note::hook>;

  boost::intrusive::list<Note, Hook, boost::intrusive::constant_time_size<false>> notes_;
  std::uint64_t noted_ = 0;
};

}  // namespace pullman::failover
