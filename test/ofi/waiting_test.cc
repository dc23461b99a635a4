// Poll sets, wait sets, and waiting for counters.
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <string>
#include <thread>

#include "pair.h"

namespace pullman::test {
namespace {

constexpr char kWord[8] = "word";  // the bytes sent, never a receive buffer

// Sends a message to b, which its queue and its counter of receives report.
void send_one(Pair& pair, std::vector<char>& into) {
  MUST(fi_trecv(pair.b->endpoint.get(), into.data(), into.size(), nullptr, pair.to_a, 7, 0,
                nullptr));
  MUST(fi_tinject(pair.a->endpoint.get(), kWord, sizeof kWord, pair.to_b, 7));
}

Owned<fid_poll> open_poll_set(fid_domain* domain) {
  fi_poll_attr attributes{};
  fid_poll* opened = nullptr;
  MUST(fi_poll_open(domain, &attributes, &opened));
  return Owned<fid_poll>(opened);
}

}  // namespace

TEST_CASE("a poll set returns the contexts of its queues and counters that have news") {
  Pair pair;
  std::vector<char> buffer(8);
  int of_queue = 0, of_counter = 0;
  pair.b->completions->fid.context = &of_queue;
  pair.b->received->fid.context = &of_counter;
  const auto set = open_poll_set(pair.b->domain.get());
  MUST(fi_poll_add(set.get(), &pair.b->completions->fid, 0));
  MUST(fi_poll_add(set.get(), &pair.b->received->fid, 0));
  std::array<void*, 4> found{};
  CHECK(fi_poll(set.get(), found.data(), 4) == 0);

  send_one(pair, buffer);
  // The message may come between the two reads of one call.
  while (fi_poll(set.get(), found.data(), 4) != 2) {
    fi_cq_read(pair.a->completions.get(), nullptr, 0);
  }

  CHECK(std::find(found.begin(), found.begin() + 2, &of_queue) != found.begin() + 2);
  CHECK(std::find(found.begin(), found.begin() + 2, &of_counter) != found.begin() + 2);
  CHECK(fi_cntr_read(pair.b->received.get()) == 1);
  MUST(fi_poll_del(set.get(), &pair.b->completions->fid, 0));
  CHECK(fi_poll(set.get(), found.data(), 4) == 0);
  CHECK(fi_poll_del(set.get(), &pair.b->completions->fid, 0) < 0);
}

TEST_CASE("a wait for a counter ends at its threshold, at its timeout, or with an error") {
  Pair pair;
  std::vector<char> buffer(8);
  CHECK(fi_cntr_wait(pair.b->received.get(), 1, 20) == -FI_ETIMEDOUT);
  for (int i = 0; i < 3; ++i) send_one(pair, buffer);

  std::thread mover([&] {
    for (int i = 0; i < 20000 && fi_cq_read(pair.a->completions.get(), nullptr, 0) != 0; ++i) {
    }
  });
  CHECK(fi_cntr_wait(pair.b->received.get(), 3, 20000) == 0);
  mover.join();
  CHECK(fi_cntr_read(pair.b->received.get()) == 3);

  MUST(fi_trecv(pair.b->endpoint.get(), buffer.data(), 8, nullptr, pair.to_a, 8, 0, &buffer));
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    MUST(fi_cancel(&pair.b->endpoint->fid, &buffer));
  });
  CHECK(fi_cntr_wait(pair.b->received.get(), 4, 20000) == -FI_EAVAIL);
  canceller.join();
  CHECK(fi_cntr_readerr(pair.b->received.get()) == 1);
}

TEST_CASE("two sides answer each other by counters alone") {
  Pair pair;
  std::array<char, 8> at_a{}, at_b{};
  for (std::uint64_t round = 1; round <= 200; ++round) {
    MUST(fi_trecv(pair.b->endpoint.get(), at_b.data(), 8, nullptr, pair.to_a, 7, 0, nullptr));
    MUST(fi_trecv(pair.a->endpoint.get(), at_a.data(), 8, nullptr, pair.to_b, 7, 0, nullptr));
    MUST(fi_tinject(pair.a->endpoint.get(), kWord, 8, pair.to_b, 7));
    REQUIRE(fi_cntr_wait(pair.b->received.get(), round, 20000) == 0);
    MUST(fi_tinject(pair.b->endpoint.get(), kWord, 8, pair.to_a, 7));
    REQUIRE(fi_cntr_wait(pair.a->received.get(), round, 20000) == 0);
  }
}

TEST_CASE("fi_trywait on a wait set says whether to sleep on it, and later events wake") {
  const auto patient = patient_pair({.wait = FI_WAIT_SET});
  Pair& pair = *patient;
  std::vector<char> buffer(8);
  int descriptor = -1;
  MUST(fi_control(&pair.b->set->fid, FI_GETWAIT, &descriptor));
  fid* waited[] = {&pair.b->set->fid};
  for (int i = 0; i < 3000; ++i) fi_cq_read(pair.b->completions.get(), nullptr, 0);
  while (fi_trywait(pair.fabric.get(), waited, 1) == -FI_EAGAIN) pair.turn(1);

  send_one(pair, buffer);

  CHECK(wakes(pair, descriptor));
  wait_for(pair, pair.b->received, 1);
  CHECK(fi_trywait(pair.fabric.get(), waited, 1) == -FI_EAGAIN);  // the event is there
  CHECK(pair.next(*pair.b).entry.len == sizeof kWord);
}

TEST_CASE("counters are added to and set, of successes and of errors") {
  Pair pair;
  fid_cntr* counter = pair.a->received.get();
  MUST(fi_cntr_set(counter, 5));
  MUST(fi_cntr_add(counter, 2));
  MUST(fi_cntr_seterr(counter, 3));
  MUST(fi_cntr_adderr(counter, 1));

  CHECK(fi_cntr_read(counter) == 7);
  CHECK(fi_cntr_readerr(counter) == 4);
  CHECK(fi_cntr_wait(counter, 7, 0) == 0);
}

TEST_CASE("fi_cq_signal wakes a thread that waits for a completion, without one") {
  Pair pair({.wait = FI_WAIT_UNSPEC});
  fi_cq_tagged_entry entry{};
  std::thread waker([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    MUST(fi_cq_signal(pair.b->completions.get()));
  });

  CHECK(fi_cq_sread(pair.b->completions.get(), &entry, 1, nullptr, 20000) == -FI_EAGAIN);
  waker.join();
}

namespace {

// Returns whether a thread of this process is within poll() (proc(5)).
bool polls(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/syscall");
  long number = -1;
  return file >> number && number == SYS_poll;
}

// Two threads that wait for the same, asleep once this is made; each records its return, and
// whether it was the right one.
class TwoWaiters {
 public:
  template <typename Wait>
  explicit TwoWaiters(Wait wait) {
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      threads_[i] = std::thread([this, i, wait] {
        names_[i] = gettid();
        if (!wait()) right_ = false;
        ++back_;
      });
    }
    for (const auto& name : names_) {
      for (const std::clock_t end = deadline(); !polls(name) && std::clock() < end;) {
        std::this_thread::yield();
      }
    }
  }
  ~TwoWaiters() {
    for (std::thread& one : threads_) one.join();
  }
  bool are_asleep() const {
    return std::all_of(names_.begin(), names_.end(), [](pid_t name) { return polls(name); });
  }
  // Waits for both to return, for much less than their timeout.
  bool are_back_rightly() const {
    for (int i = 0; i < 20'000 && back_ != 2; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return back_ == 2 && right_;
  }

 private:
  std::atomic<bool> right_ = true;
  std::atomic<int> back_ = 0;
  std::array<std::atomic<pid_t>, 2> names_{};
  std::array<std::thread, 2> threads_;
};

constexpr int kLongMs = 60'000;

}  // namespace

TEST_CASE(
    "all threads that wait for a counter are woken at the threshold, whichever checks first") {
  Pair pair({.threading = FI_THREAD_SAFE});
  fi_cntr_attr counting{};
  counting.wait_obj = FI_WAIT_UNSPEC;
  fid_cntr* counter = nullptr;
  MUST(fi_cntr_open(pair.b->domain.get(), &counting, &counter, nullptr));
  const Owned<fid_cntr> owned(counter);
  for (std::uint64_t round = 1; round <= 20; ++round) {
    const TwoWaiters two([&] { return fi_cntr_wait(counter, round, kLongMs) == 0; });
    MUST(fi_cntr_add(counter, 1));
    CHECK(fi_cntr_read(counter) == round);
    REQUIRE(two.are_back_rightly());
  }
}

TEST_CASE("a signal wakes all threads that wait for a completion, though another reads the queue") {
  Pair pair({.wait = FI_WAIT_UNSPEC, .threading = FI_THREAD_SAFE});
  fid_cq* const queue = pair.b->completions.get();
  for (int round = 0; round < 20; ++round) {
    const TwoWaiters two([&] {
      fi_cq_tagged_entry entry{};
      return fi_cq_sread(queue, &entry, 1, nullptr, kLongMs) == -FI_EAGAIN;
    });
    MUST(fi_cq_signal(queue));
    fi_cq_tagged_entry entry{};
    CHECK(fi_cq_read(queue, &entry, 1) == -FI_EAGAIN);
    REQUIRE(two.are_back_rightly());
  }
  // Without sleepers the signal is kept for the next one.
  MUST(fi_cq_signal(queue));
  fi_cq_tagged_entry entry{};
  CHECK(fi_cq_read(queue, &entry, 1) == -FI_EAGAIN);
  CHECK(fi_cq_sread(queue, &entry, 1, nullptr, -1) == -FI_EAGAIN);
}

TEST_CASE("a signal does not keep the descriptor readable once the queue was read") {
  const auto set = GENERATE(FI_WAIT_FD, FI_WAIT_SET);
  Pair pair({.wait = set});
  fid_cq* const queue = pair.b->completions.get();
  MUST(fi_cq_signal(queue));
  fi_cq_tagged_entry entry{};
  CHECK(fi_cq_read(queue, &entry, 1) == -FI_EAGAIN);
  if (set == FI_WAIT_SET) CHECK(fi_wait(pair.b->set.get(), 0) == -FI_ETIMEDOUT);

  fid* one = &queue->fid;
  int descriptor = -1;
  MUST(fi_control(one, FI_GETWAIT, &descriptor));
  bool sleeps = false;
  for (const std::clock_t end = deadline(); !sleeps && std::clock() < end;) {
    pollfd readable{descriptor, POLLIN, 0};
    sleeps = fi_trywait(pair.fabric.get(), &one, 1) == 0 && poll(&readable, 1, 0) == 0;
    fi_cq_read(queue, &entry, 1);
  }
  CHECK(sleeps);
}

TEST_CASE("a queue without a wait object refuses a signal") {
  Pair pair;
  CHECK(fi_cq_signal(pair.b->completions.get()) == -FI_ENOSYS);
}

TEST_CASE("a wait for a counter sleeps although the counter has unread errors") {
  Pair pair({.threading = FI_THREAD_SAFE});
  fi_cntr_attr counting{};
  counting.wait_obj = FI_WAIT_UNSPEC;
  fid_cntr* counter = nullptr;
  MUST(fi_cntr_open(pair.b->domain.get(), &counting, &counter, nullptr));
  const Owned<fid_cntr> owned(counter);
  MUST(fi_cntr_adderr(counter, 1));
  const TwoWaiters two([&] { return fi_cntr_wait(counter, 1, kLongMs) == 0; });
  CHECK(two.are_asleep());
  MUST(fi_cntr_add(counter, 1));
  CHECK(two.are_back_rightly());
}

TEST_CASE("a member of a poll set cannot be closed before it is removed") {
  Pair pair;
  fi_cq_attr attributes{};
  fid_cq* queue = nullptr;
  MUST(fi_cq_open(pair.a->domain.get(), &attributes, &queue, nullptr));
  fi_cntr_attr counting{};
  fid_cntr* counter = nullptr;
  MUST(fi_cntr_open(pair.a->domain.get(), &counting, &counter, nullptr));
  const auto set = open_poll_set(pair.a->domain.get());
  {
    const auto other = open_poll_set(pair.a->domain.get());
    MUST(fi_poll_add(set.get(), &queue->fid, 0));
    MUST(fi_poll_add(other.get(), &queue->fid, 0));
    MUST(fi_poll_add(other.get(), &counter->fid, 0));
    CHECK(fi_close(&counter->fid) == -FI_EBUSY);
  }

  CHECK(fi_close(&counter->fid) == 0);
  CHECK(fi_close(&queue->fid) == -FI_EBUSY);
  MUST(fi_poll_del(set.get(), &queue->fid, 0));
  CHECK(fi_close(&queue->fid) == 0);
}

}  // namespace pullman::test
