#include "base/fork_mark.h"

#include <pthread.h>

#include <mutex>
#include <system_error>

namespace pullman {
namespace {

// All marks of this process. Never destroyed, since threads may be running while the process ends.
struct Marks {
  std::mutex mutex;
  boost::intrusive::list<ForkMark> all;
};

Marks& marks() {
  static Marks& only = *new Marks;
  return only;
}

// A thread may be making a mark while another forks.
void hold() {
  marks().mutex.lock();
}
void release() {
  marks().mutex.unlock();
}
void set_all() {
  for (ForkMark& mark : marks().all) mark.set();
  release();
}

}  // namespace

ForkMark::ForkMark(std::uint8_t& flags, std::uint8_t bits) : flags_(flags), bits_(bits) {
  static const int error = pthread_atfork(hold, release, set_all);
  if (error != 0) throw std::system_error(error, std::generic_category(), "pthread_atfork");
  const std::lock_guard locked(marks().mutex);
  marks().all.push_back(*this);
}

ForkMark::~ForkMark() {
  const std::lock_guard locked(marks().mutex);
  marks().all.erase(marks().all.iterator_to(*this));
}

}  // namespace pullman
