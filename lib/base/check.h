// Checks of internal invariants. A broken one is a bug in Pullman: it is reported with its place,
// and the process aborts. Invalid input is not: from the network it is a verdict, from the user a
// status.
#pragma once

namespace pullman {

// Prints the failed condition with its place and aborts.
[[noreturn, gnu::cold, gnu::noinline]] void check_failed(const char* condition, const char* file,
                                                         int line);

}  // namespace pullman

// Checked in every build.
#define PULLMAN_CHECK(condition)                \
  (__builtin_expect(!!(condition), 1) ? (void)0 \
                                      : ::pullman::check_failed(#condition, __FILE__, __LINE__))

// For expensive checks and the hot path: checked in debug, sanitizer and simulator builds only.
#ifdef PULLMAN_DCHECKS
#define PULLMAN_DCHECK(condition) PULLMAN_CHECK(condition)
#else
#define PULLMAN_DCHECK(condition) ((void)sizeof(!(condition)))
#endif
