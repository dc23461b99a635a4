#include "session.h"

#include <fmt/format.h>

namespace perf {

namespace {

constexpr std::size_t kWordBytes = 16384;
constexpr pullman::Tag kWords = pullman::Tag{0x50455246} << 32;  // "PERF"; data tags have 0 there
// A request may end by time, and not by a packet, so no rest is long.
constexpr std::chrono::milliseconds kLongestRest{1};
constexpr std::uint32_t kTurnsPerClock = 4096;  // turns between looks at the clock

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

pullman::Tag tag_of(Word word) {
  return kWords | static_cast<pullman::Tag>(word);
}
pullman::Tag data_tag(std::uint64_t run) {
  return run & 0xFFFFFFFF;
}

nlohmann::json Session::meet_client() {
  peer_ = pullman::kAnyPeer;
  pullman::Request request;
  std::vector<std::byte> buffer;
  listen(Word::kJob, request, buffer);
  finish(request);
  peer_ = request.source();
  return heard(request, buffer);
}

void Session::meet_server(const std::string& address) {
  other_end_ = "server at " + address;
  expected_there_ = fmt::format(
      "; nothing has ever come from there: see that a server was started on that address and port "
      "(on a loopback address one with --nic lo), with --driver {}, too",
      context_.driver());
  peer_ = context_.connect(address);
  if (context_.is_self(peer_)) {
    throw std::runtime_error(address + " is this process itself: name the server's address");
  }
}

void Session::say(Word word, const nlohmann::json& what) {
  const std::string text = what.dump();
  say_bytes(word, bytes_of(text));
}

void Session::say_bytes(Word word, std::span<const std::byte> bytes) {
  pullman::Request request;
  context_.send(peer_, tag_of(word), bytes, request);
  finish(request);
}

nlohmann::json Session::hear(Word word) {
  pullman::Request request;
  std::vector<std::byte> buffer;
  listen(word, request, buffer);
  finish(request);
  return heard(request, buffer);
}

void Session::listen(Word word, pullman::Request& request, std::vector<std::byte>& buffer) {
  buffer.resize(kWordBytes);
  context_.receive(peer_, tag_of(word), 0, buffer, request);
}

nlohmann::json Session::heard(const pullman::Request& request,
                              const std::vector<std::byte>& buffer) {
  expect_ok(request);
  const char* text = reinterpret_cast<const char*>(buffer.data());
  nlohmann::json word = nlohmann::json::parse(text, text + request.length(), nullptr, false);
  expected_there_.clear();
  if (!word.is_object())
    close_abortively("said something that cannot be understood: is it pullman-perf?");
  return word;
}

void Session::finish(pullman::Request& request) {
  moved_ = true;
  while (!request.done()) turn(false);
  expect_ok(request);
}

void Session::expect_ok(const pullman::Request& request) {
  if (request.status() != pullman::Status::kOk) close_abortively(to_sentence(request.status()));
}

void Session::turn(bool moved) {
  const bool rests = idle_ && !moved;
  const std::size_t received =
      rests ? context_.wait_for_arrival(kLongestRest) : context_.progress();
  idle_ = received == 0 && !moved;
  moved_ |= moved;
  const bool long_idle = rests && idle_;
  if (++turns_ < kTurnsPerClock && !long_idle) return;
  turns_ = 0;
  const Clock::time_point now = Clock::now();
  if (moved_) last_moved_ = now;
  moved_ = false;
  if (now - last_moved_ > std::chrono::duration<double>(options_.patience_s)) {
    close_abortively(fmt::format("nothing was heard for {} s", options_.patience_s));
  }
}

void Session::close_abortively(const std::string& why) {
  context_.close(std::chrono::nanoseconds(0));
  throw Failure(fmt::format("the {}: {}{}", other_end_, why, expected_there_));
}

}  // namespace perf
