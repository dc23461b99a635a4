// Starts a thread of the library's own beside those of the program. Signals are for the program's
// threads, but for those that a thread causes itself, such as SIGSEGV.
#pragma once

#include <pthread.h>

#include <csignal>
#include <thread>
#include <utility>

namespace pullman {

// Throws std::system_error if there is no thread to be had. The name has 15 letters at most.
template <typename Run>
std::thread start_background_thread(const char* name, Run run) {
  sigset_t blocked;
  sigset_t before;
  sigfillset(&blocked);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&blocked, own);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  std::thread thread;
  try {
    thread = std::thread(std::move(run));
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread.native_handle(), name);
  return thread;
}

}  // namespace pullman
