// Checks of our own invariants. A broken one is a bug in Pullman: it says what and where, and
// aborts. Misbehaviour of the network is a verdict and of the user a status; neither belongs here.
#pragma once

namespace pullman {

// Prints the failed condition with its place and aborts. Cold.
[[noreturn, gnu::cold, gnu::noinline]] void check_failed(const char* condition, const char* file,
                                                         int line);

}  // namespace pullman

// Holds in every build.
#define PULLMAN_CHECK(condition)                \
  (__builtin_expect(!!(condition), 1) ? (void)0 \
                                      : ::pullman::check_failed(#condition, __FILE__, __LINE__))

// Dearer, or on the hot path: in debug, sanitizer and simulator builds only.
#ifdef PULLMAN_DCHECKS
#define PULLMAN_DCHECK(condition) PULLMAN_CHECK(condition)
#else
#define PULLMAN_DCHECK(condition) ((void)sizeof(!(condition)))
#endif
