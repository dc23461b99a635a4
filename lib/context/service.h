// What the library's own parts above the context ask of it: programs have no use for it.
#pragma once

#include <filesystem>
#include <optional>

#include "base/time.h"
#include "pullman/callback_request.h"
#include "pullman/context.h"
#include "telemetry/rows.h"

namespace pullman {

class [[gnu::visibility("hidden")]] Context::Service {
 public:
  // What the program does with the context, as far as that can be told from here.
  struct Activity {
    Instant at{};  // when this was so
    // Since when a call of the program waits; nothing: none does.
    std::optional<Instant> call_begun;
    bool has_thread = false;  // Config::progress
    bool is_closed = false;   // it makes no turns any more
    // When the program last called or was called back, if a thread makes turns; min(): never.
    Instant attended_at{};
  };

  // Returns what the context's counters are now, shown or not (telemetry/rows.h). Allocates.
  static telemetry::Rows rows(Context & context, Activity & activity);
  // Returns where they are shown; empty: nowhere.
  static std::filesystem::path counters(Context & context);

  // Has the request's callback called behind turns: now and then while any are made, soon if the
  // descriptor is readable, and if the request becomes done. Not with -1, which is none.
  static void attend(Context & context, CallbackRequest & what, int descriptor);
  // Ends that, with the same descriptor; the callback may just be running.
  static void end_attendance(Context & context, int descriptor);
};

}  // namespace pullman
