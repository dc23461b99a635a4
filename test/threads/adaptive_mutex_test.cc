#include "base/adaptive_mutex.h"

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <mutex>
#include <thread>

namespace pullman {
namespace {

// Takes the mutex turn after turn until the other thread has had it.
void until_others_are_in(AdaptiveMutex& mutex, const std::atomic<bool>& in) {
  while (!in) {
    mutex.lock();
    const bool owed = mutex.owed_to_others();
    mutex.unlock();
    if (owed) mutex.stand_aside();
  }
}

TEST_CASE("a mutex is held by one thread at a time") {
  constexpr int kThreads = 4;
  constexpr int kTurns = 20'000;
  AdaptiveMutex mutex;
  int inside = 0;  // neither is atomic
  int turns = 0;
  std::array<int, kThreads> others_seen{};
  std::array<std::thread, kThreads> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads[i] = std::thread([&, i] {
      for (int turn = 0; turn < kTurns; ++turn) {
        const std::lock_guard held(mutex);
        others_seen[i] += inside++;
        if (turn % 1000 == 0) std::this_thread::yield();
        ++turns;
        --inside;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(turns == kThreads * kTurns);
  for (const int seen : others_seen) CHECK(seen == 0);
}

TEST_CASE("a thread that sleeps while a mutex is held for long gets it afterwards") {
  AdaptiveMutex mutex;
  std::atomic<bool> in = false;
  mutex.lock();
  std::thread other([&] {
    const std::lock_guard held(mutex);
    in = true;
  });
  // Longer than it spins, and than one of its sleeps.
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK_FALSE(in);
  mutex.unlock();
  other.join();
  CHECK(in);
}

TEST_CASE("a mutex is owed only to threads that wait, and after a number of turns") {
  AdaptiveMutex mutex;
  mutex.lock();
  for (int turn = 0; turn < 1000; ++turn) CHECK_FALSE(mutex.owed_to_others());
  std::thread other([&] { const std::lock_guard held(mutex); });
  while (!mutex.owed_to_others()) std::this_thread::yield();
  int turns = 1;
  while (!mutex.owed_to_others()) ++turns;
  CHECK(turns == AdaptiveMutex::kPatience);
  mutex.unlock();
  other.join();
  mutex.lock();
  for (int turn = 0; turn < 1000; ++turn) CHECK_FALSE(mutex.owed_to_others());
  mutex.unlock();
}

TEST_CASE("a thread that takes a mutex turn after turn lets others in") {
  AdaptiveMutex mutex;
  std::atomic<bool> in = false;
  std::thread other([&] {
    const std::lock_guard held(mutex);
    in = true;
  });
  until_others_are_in(mutex, in);
  other.join();
}

TEST_CASE("standing aside returns at once if no thread waits") {
  AdaptiveMutex mutex;
  mutex.stand_aside();
  mutex.lock();
  mutex.unlock();
}

}  // namespace
}  // namespace pullman
