// What a test may order of the stand-in provider, and what it may look at.
//
// The provider is loaded by libfabric; a test that wants its controls opens the same file again and
// looks up `standin_controls` (nic/standin.h does).
#pragma once

#include <cstddef>
#include <cstdint>

namespace pullman::standin {

// Orders are counts that run down, or states that last. All zero: a NIC without trouble.
struct Orders {
  unsigned fail_receives = 0;      // so many arrivals become errored completions
  unsigned truncate_receives = 0;  // so many arrivals become FI_ETRUNC completions
  unsigned fail_sends = 0;         // so many sends become errored completions
  int error = 0;                   // of errored completions; 0: FI_EIO
  unsigned refuse_sends = 0;       // so many posts are refused with -FI_EAGAIN
  bool hold_sends = false;         // what is posted does not leave, nor complete

  std::uint16_t unresolvable_port = 0;  // addresses with this port cannot be resolved
  unsigned resolve_reads = 1;           // reads of the event queue that a resolution takes

  std::size_t completion_queue_limit = 0;  // entries granted at most; 0: as many as asked for
};

// All since the controls were last reset.
struct Tallies {
  std::uint64_t faults = 0;            // rules of the hardware broken by its user
  const char* first_fault = "";        // the first of them
  std::uint64_t sends = 0;             // posted
  std::uint64_t max_sends = 0;         // outstanding at once
  std::uint64_t send_queue_reads = 0;  // fi_cq_read of a queue bound to sends
  std::uint64_t receives_dropped = 0;  // arrivals for which no buffer was posted
  std::uint64_t insertions = 0;
  std::uint64_t removals = 0;
};

struct Controls {
  Orders orders;
  Tallies tallies;
  // Faults are counted, for a test to look at. Otherwise each aborts the process, as hardware would
  // in its own way.
  bool count_faults = false;
  int open_objects = 0;  // of all kinds, now

  // Every domain's link goes down or comes back, and says so by an event.
  void (*set_link)(bool up) = nullptr;
};

}  // namespace pullman::standin

extern "C" pullman::standin::Controls* standin_controls();
