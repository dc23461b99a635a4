// The program `nft`, started before it is needed: a cut in the midst of a stream must not take the
// processor from it for as long as a program takes to start.
//
// Does not know what is cut.
#pragma once

#include <sys/types.h>

#include <string>

namespace perf {

class Nft {
 public:
  // Starts it; it waits for what it is to do. `only_check`: it only says whether that can be done.
  // Throws Failure.
  explicit Nft(bool only_check = false);
  // Without rules it ends, and has done nothing.
  ~Nft();
  Nft(const Nft&) = delete;
  Nft& operator=(const Nft&) = delete;

  // Once. Returns when the rules hold; throws Failure if they do not.
  void run(const std::string& rules);

 private:
  int finish();

  pid_t child_ = 0;  // 0: it has ended
  int pipe_[2];      // what is written there it does; we keep the other end, too: if nft has died
                     // a write is in vain, and no signal
};

}  // namespace perf
