#include "ofi/progress_thread.h"

#include "ofi/endpoint.h"

namespace pullman::ofi {
namespace {

// Calls of the application undo the alarm that was set for the sleep: it is short.
constexpr int kNapMs = 1;
constexpr int kNothingToDoMs = 100;

}  // namespace

ProgressThread::ProgressThread(Lock& lock) : lock_(lock), thread_([this] { run(); }) {}

ProgressThread::~ProgressThread() {
  stop_ = true;
  waiter_.ring();
  thread_.join();
}

void ProgressThread::add(Endpoint& endpoint) {
  endpoints_.push_back(&endpoint);
  waiter_.watch(endpoint.wait_descriptor());
  waiter_.ring();
}

void ProgressThread::remove(Endpoint& endpoint) {
  std::erase(endpoints_, &endpoint);
  waiter_.forget(endpoint.wait_descriptor());
}

void ProgressThread::run() {
  while (!stop_) {
    bool asleep = true;
    bool any = false;
    {
      Locked locked(lock_);
      for (Endpoint* endpoint : endpoints_) asleep = endpoint->prepare_wait() && asleep;
      any = !endpoints_.empty();
      waiter_.silence();
    }
    if (asleep) {
      waiter_.wait(any ? kNapMs : kNothingToDoMs);
    } else {
      std::this_thread::yield();  // the application wants the lock, too
    }
  }
}

}  // namespace pullman::ofi
