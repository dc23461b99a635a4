// The two halves of every pattern that keeps many messages outstanding.
//
// Know slots: `window` requests with their buffers, used in turn. Do not know when to stop or who
// calls progress().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "payload.h"
#include "session.h"

namespace perf {

// With --check every slot has a buffer of its own. Without, all share one: nobody reads it, and the
// measurement is of Pullman, not of how fast a fresh buffer comes into the cache.
class Slots {
 public:
  Slots(const Job& job);

  std::size_t count() const { return count_; }
  pullman::Request& request(std::uint64_t number) { return requests_[number % count_]; }
  std::span<std::byte> buffer(std::uint64_t number) {
    return std::span(memory_).subspan(shared_ ? 0 : (number % count_) * size_, size_);
  }

 private:
  std::size_t count_;
  std::size_t size_;
  bool shared_;
  std::vector<std::byte> memory_;
  std::unique_ptr<pullman::Request[]> requests_;
};

class StreamSender {
 public:
  StreamSender(Session& session, const Job& job, bool from_server);

  // Sends up to `most` more messages, as long as slots are free. Returns how many.
  std::uint64_t pump(std::uint64_t most);

  std::uint64_t sent() const { return sent_; }
  // Waits until every message sent is delivered.
  void finish();

 private:
  Session& session_;
  const Job job_;
  bool from_server_;
  Slots slots_;
  std::uint64_t sent_ = 0;
};

class StreamReceiver {
 public:
  // Posts a receive in every slot, and one for the sender's last word.
  StreamReceiver(Session& session, const Job& job, bool from_server);

  // Takes what has arrived and posts receives anew. Returns how many messages came.
  std::uint64_t pump();

  // Whether the sender has ended and everything it sent is here.
  bool complete();
  // Takes back the receives nothing will match. Once complete.
  void cancel();

  std::uint64_t received() const { return received_; }
  std::uint64_t errors() const { return errors_; }

 private:
  void post(std::uint64_t number);
  void judge(std::uint64_t number);

  Session& session_;
  const Job job_;
  bool from_server_;
  Slots slots_;
  std::uint64_t received_ = 0;
  std::uint64_t errors_ = 0;
  std::uint64_t expected_ = ~std::uint64_t{0};  // known once the sender has ended
  pullman::Request end_;
  std::vector<std::byte> end_buffer_;
};

}  // namespace perf
