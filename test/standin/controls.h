// The orders that a test gives to the stand-in provider, and the counts that it reads.
//
// libfabric loads the provider; a test opens the same file again and looks up `standin_controls`
// for its controls (nic/standin.h does).
#pragma once

#include <cstddef>
#include <cstdint>

namespace pullman::standin {

// Orders are counts that run down, or states that last. All zero: a NIC without faults.
struct Orders {
  unsigned fail_receives = 0;      // that many arrivals become errored completions
  unsigned truncate_receives = 0;  // that many arrivals become FI_ETRUNC completions
  unsigned fail_sends = 0;         // that many sends become errored completions
  int error = 0;                   // of errored completions; 0: FI_EIO
  unsigned refuse_sends = 0;       // that many posts are refused with -FI_EAGAIN
  bool hold_sends = false;         // posted sends neither leave nor complete

  std::uint16_t unresolvable_port = 0;  // addresses with this port cannot be resolved
  unsigned resolve_reads = 1;           // reads of the event queue that a resolution takes

  std::size_t completion_queue_limit = 0;  // entries granted at most; 0: as many as asked for
};

// Counts since the controls were last reset.
struct Tallies {
  std::uint64_t faults = 0;            // broken rules of the hardware
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
  // Counts faults, for a test to read. Otherwise each aborts the process, as hardware would fail.
  bool count_faults = false;
  int open_objects = 0;  // of all kinds

  // Takes every domain's link down or up, with an event.
  void (*set_link)(bool up) = nullptr;
};

}  // namespace pullman::standin

extern "C" pullman::standin::Controls* standin_controls();
