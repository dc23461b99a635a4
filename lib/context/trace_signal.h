// A signal by which a person asks for the trace (Config::trace_signal), while any context of the
// process has one. The handler counts; contexts see the count in their turns.
#pragma once

#include <cstdint>
#include <string_view>

namespace pullman {

class TraceSignal {
 public:
  // Returns the number of a signal called "USR1", "SIGUSR2" or the like, or 0 if it is no other
  // than those two: others mean something already.
  static int number_of(std::string_view name);

  // Takes the signal, unless the program has a handler for it: that stays, and is warned of. 0 is
  // none. It is never given back: one that comes late ends no program, and what is exec'ed has the
  // default again.
  explicit TraceSignal(int number);

  // Whether it was taken.
  bool watches() const { return number_ != 0; }
  // How often it has come.
  std::uint32_t count() const;

 private:
  int number_;
};

}  // namespace pullman
