// The list of rails that have begun or ceased to carry messages since the program last asked.
//
// Bounded by construction: a rail has one note, which its owner keeps beside the rail and which
// counts the changes, so none is lost. Does not know the health of a rail, nor the engine's rails:
// it links the notes of those that have changed.
#pragma once

#include <boost/intrusive/list.hpp>
#include <cstdint>

#include "pullman/types.h"

namespace pullman::failover {

class RailNews {
 public:
  // The note of one rail. It leaves the list when it is destroyed.
  struct Note {
    PeerId peer;
    std::uint8_t number = 0;    // of the rail
    bool carries = false;       // whether the rail carries messages
    std::uint32_t changes = 0;  // since the program was last told
    std::uint64_t since = 0;    // a running number: the note with the lower one is older
    boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>
        hook;
  };

  // Records that the rail has begun or ceased to carry messages.
  void handle_change(Note& note, bool carries);

  // Returns the oldest note, for take() or forget(); null if there is none.
  Note* oldest() { return notes_.empty() ? nullptr : &notes_.front(); }
  static bool has_news(const Note& note) { return note.hook.is_linked(); }
  // Removes the note from the list and returns how often the rail has changed.
  static std::uint32_t take(Note& note);
  // Removes the note without an event, since the peer has ended.
  static void forget(Note& note) { take(note); }

 private:
  using Hook = boost::intrusive::member_hook<Note, decltype(Note::hook), &Note::hook>;

  boost::intrusive::list<Note, Hook, boost::intrusive::constant_time_size<false>> notes_;
  std::uint64_t noted_ = 0;
};

}  // namespace pullman::failover
