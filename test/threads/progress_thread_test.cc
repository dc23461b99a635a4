// The progress thread, with a context that does nothing but count its turns.
#include "context/progress_thread.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <thread>

namespace pullman {
namespace {

using std::chrono::milliseconds;

// Waits until something is so; returns false if that takes far too long.
bool eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

struct FakeContext final : Attended {
  int make_turn() override {
    ++turns;
    if (packets != 0) {
      --packets;
      return kMoreToDo;
    }
    arrival.silence();
    return wakes ? arrival.descriptor() : kNothingWakes;
  }
  void call_back(Gate::Hold&) override {}
  void note_sleep(Instant) override {}
  void receive(int count) {
    packets += count;
    arrival.ring();
  }

  std::atomic<int> turns = 0;
  std::atomic<int> packets = 0;
  std::atomic<bool> wakes = true;
  Bell arrival;
};

// A context and its thread, which has nothing to do and sleeps.
struct Asleep {
  Asleep() {
    thread.start([] {});
    REQUIRE(eventually([&] { return context.turns > 0; }));
    std::this_thread::sleep_for(milliseconds(20));
    before = context.turns;
  }
  bool wakes() {
    return eventually([&] { return context.turns > before; });
  }

  FakeContext context;
  Gate gate{true};
  ProgressThread thread{gate, context};
  int before = 0;
};

TEST_CASE("with nothing to do the thread sleeps") {
  Asleep asleep;
  std::this_thread::sleep_for(milliseconds(50));
  CHECK(asleep.context.turns == asleep.before);
}

TEST_CASE("what arrives wakes the thread, which makes turns until it is done") {
  Asleep asleep;
  asleep.context.receive(100);
  CHECK(eventually([&] { return asleep.context.packets == 0; }));
  CHECK(asleep.context.turns >= asleep.before + 100);
}

TEST_CASE("a call of the program wakes the thread, as there may be something to do") {
  Asleep asleep;
  { const Gate::Hold held(asleep.gate); }
  CHECK(asleep.wakes());
}

TEST_CASE("a program that makes turns is left alone, and stood in for when it stops") {
  Asleep asleep;
  const auto end = std::chrono::steady_clock::now() + milliseconds(200);
  int own = 0;
  while (std::chrono::steady_clock::now() < end) {
    const Gate::Hold held(asleep.gate);
    asleep.thread.note_turn();
    ++own;
  }
  const int beside = asleep.context.turns - asleep.before;
  CHECK(beside < own / 10);
  asleep.before = asleep.context.turns;
  CHECK(asleep.wakes());
}

TEST_CASE("a program that waits is left alone, and stood in for afterwards") {
  Asleep asleep;
  {
    const Gate::Hold held(asleep.gate);
    asleep.thread.begin_wait();
  }
  std::this_thread::sleep_for(milliseconds(50));
  asleep.before = asleep.context.turns;
  asleep.context.receive(1);
  std::this_thread::sleep_for(milliseconds(50));
  CHECK(asleep.context.turns == asleep.before);
  {
    const Gate::Hold held(asleep.gate);
    asleep.thread.end_wait();
  }
  CHECK(eventually([&] { return asleep.context.packets == 0; }));
}

TEST_CASE("where nothing can wake the thread it looks again and again") {
  Asleep asleep;
  asleep.context.wakes = false;
  asleep.context.receive(1);
  REQUIRE(asleep.wakes());
  const int soon = asleep.context.turns;
  CHECK(eventually([&] { return asleep.context.turns > soon + 3; }));
}

TEST_CASE("the thread stops at once, whatever it does") {
  for (int i = 0; i < 50; ++i) {
    FakeContext context;
    Gate gate(true);
    ProgressThread thread(gate, context);
    thread.start([] {});
    if (i % 2 == 0) std::this_thread::sleep_for(milliseconds(1));
    if (i % 3 == 0) context.receive(10);
    thread.stop();
  }
}

}  // namespace
}  // namespace pullman
