// How the processes of a world tell each other, and pullman-stat, how they do, without their
// programs' doing: questions are answered behind a turn of the context, also one of its progress
// thread. So a process that makes no turns does not answer, and others say what they wait for.
//
// pullman-stat asks a process of its host at the door beside the counters' file (telemetry/door.h).
// That process answers for itself and passes the question on to the processes that it is connected
// to, which pass it on in turn; a question says who has been asked already. Answers come back the
// same way, each at once, and no process waits for any: pullman-stat decides how long to wait, and
// whether to ask again. Messages are the world's own, so only processes with the job's key are
// heard.
//
// All of it is bounded: the questions that are remembered, the messages that are under way, and
// what a question costs. Knows nothing of what is stuck.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "pullman/callback_request.h"
#include "pullman/context.h"
#include "telemetry/door.h"
#include "world/bytes.h"
#include "world/card.h"
#include "world/current_call.h"
#include "world/place.h"
#include "world/question.h"
#include "world/roster.h"

namespace pullman::world {

class SideChannel {
 public:
  SideChannel(Context& context, Roster& roster, const CurrentCall& current, Place place);
  // Closes the context, after which nothing is called.
  ~SideChannel();
  SideChannel(const SideChannel&) = delete;
  SideChannel& operator=(const SideChannel&) = delete;

  // Where all processes can be reached. With it, those are asked to which none is connected.
  void set_addresses(std::vector<std::vector<std::string>> addresses);

 private:
  // Questions that are remembered: each is answered and passed on once.
  static constexpr std::size_t kRemembered = 32;
  // Messages that have not left: more are not sent.
  static constexpr std::size_t kMaxUnsent = 4096;
  // Processes that are told in one go.
  static constexpr std::size_t kMaxAtOnce = 1024;
  // Processes that are connected to, to be asked, in one go: they are peers of the program then.
  static constexpr unsigned kMaxCalls = 64;
  // Questions to a process that has not been heard since.
  static constexpr unsigned kMaxUnanswered = 8;

  struct Asked {
    std::uint64_t number = 0;
    PeerId from{};                         // who gets the answers, unless
    telemetry::Door::Visitor visitor = 0;  // it is one at our door; 0: none
  };
  struct Sent {
    Bytes bytes;
    Request request;
  };

  // Behind a turn. Nothing is thrown.
  void attend();
  void receive();
  void handle_message(PeerId from, Kind kind, std::span<const std::byte> bytes);
  void handle_question(PeerId from, std::span<const std::byte> bytes);
  void handle_answer(std::span<const std::byte> bytes);
  void handle_visitor(const telemetry::Door::Question& question);
  void pass_on(Question question, std::optional<PeerId> from);
  void call_unconnected(Question& question);
  Asked* find(std::uint64_t number);
  void remember(const Asked& asked);
  void answer(const Asked& asked, std::span<const std::byte> bytes);
  void send(PeerId to, Kind kind, std::span<const std::byte> bytes);
  // Returns an answer about this process.
  Bytes about_itself(std::uint64_t number);

  Context& context_;
  Roster& roster_;
  const CurrentCall& current_;
  const Place place_;
  const std::string host_;
  std::mutex attending_;
  bool ended_ = false;
  std::optional<telemetry::Door> door_;  // none if the context shows no counters
  std::vector<std::vector<std::string>> addresses_;
  std::array<Asked, kRemembered> asked_;
  std::size_t next_asked_ = 0;
  std::uint64_t questions_ = 0;  // that began here
  std::list<Sent> sent_;
  std::unordered_map<unsigned, unsigned> unanswered_;  // questions, by rank
  std::vector<std::byte> buffer_;
  CallbackRequest received_;
};

}  // namespace pullman::world
