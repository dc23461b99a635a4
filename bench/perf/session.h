// One client and one server that agree on what to run. What they say to each other travels as
// Pullman messages, under tags of their own, so data never matches it.
//
// Knows how to wait with patience and to give up with a sentence. Does not know the patterns.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "job.h"
#include "options.h"
#include "pullman/pullman.h"
#include "report.h"

namespace perf {

enum class Word : std::uint8_t {
  kJob,     // client: run this next
  kReady,   // server: receives are posted
  kEnd,     // sender: that was all; how many messages it sent
  kResult,  // server: what it counted
  kWindow,  // rate's receiver: a window has arrived
  kClock,   // failover: what time is it? And the server's answer
  kStart,   // failover's client: the stream begins
  kSeries,  // failover's server: what arrived when, as bytes
};

class Session {
 public:
  Session(pullman::Context& context, const Options& options)
      : context_(context), options_(options) {}

  // The server's: waits for the first job of whoever comes first.
  nlohmann::json meet_client();
  // The client's.
  void meet_server(const std::string& address);

  void say(Word word, const nlohmann::json& what = nlohmann::json::object());
  void say_bytes(Word word, std::span<const std::byte> bytes);
  nlohmann::json hear(Word word);

  // For patterns that do other things while they wait for a word: posts the receive ...
  void listen(Word word, pullman::Request& request, std::vector<std::byte>& buffer);
  // ... and reads it when it is done.
  nlohmann::json heard(const pullman::Request& request, const std::vector<std::byte>& buffer);

  // Calls progress() until the request is done; throws Failure if it failed or patience ran out.
  void finish(pullman::Request& request);
  void expect_ok(const pullman::Request& request);

  // One turn while waiting for the other end. `moved` says whether something has happened since the
  // last call; throws Failure when nothing has for too long.
  void turn(bool moved);

  // Closes the context, so that requests still pending end and may be destroyed on the way out.
  [[noreturn]] void close_abortively(const std::string& why);

  pullman::Context& context() { return context_; }
  const pullman::Context& context() const { return context_; }
  pullman::PeerId peer() const { return peer_; }

 private:
  pullman::Context& context_;
  const Options& options_;
  pullman::PeerId peer_;
  std::string other_end_ = "client";
  std::string expected_there_;  // to be added to what went wrong: until it has spoken
  bool idle_ = false;           // the last turn brought nothing
  std::uint32_t turns_ = 0;     // since the clock was looked at
  bool moved_ = true;           // something has happened since then
  Clock::time_point last_moved_ = Clock::now();
};

pullman::Tag tag_of(Word word);
pullman::Tag data_tag(std::uint64_t run);

}  // namespace perf
