// The words of the conversation are those of Flux RFC 13, "Simple Process Manager Interface v1",
// and of MPICH's simple PMI: lines of NAME=VALUE, each answered by one.
#include "launch/pmi1.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <utility>

#include "launch/hex_value.h"
#include "launch/number.h"
#include "launch/pmi_process.h"
#include "launch/shared_library.h"

namespace pullman::launch {
namespace {

using Steady = std::chrono::steady_clock;

// An answer that has no reason to be long in coming.
constexpr std::chrono::seconds kSoon(30);
constexpr std::size_t kMaxLine = 4096;

// A line with its end; it is wiped, since a key may be in it.
struct Line {
  Line() = default;
  explicit Line(std::string words) : text(std::move(words)) { text += '\n'; }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  ~Line() { crypto::wipe(std::as_writable_bytes(std::span(text))); }

  // Returns what the answer says under that name, or nothing.
  std::string_view value_of(std::string_view name) const {
    std::string_view rest(text);
    while (!rest.empty()) {
      const std::string_view word = rest.substr(0, rest.find_first_of(" \n"));
      if (word.starts_with(name) && word.substr(name.size()).starts_with('=')) {
        return word.substr(name.size() + 1);
      }
      rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    }
    return {};
  }

  std::string text;
};

// One question after another, each with its answer. After one that was not answered, or not as it
// should have been, nothing more is asked, since nobody knows what a later answer belongs to.
class Conversation {
 public:
  explicit Conversation(int socket) : socket_(socket) {}

  // Returns whether the answer came in time, is of that kind, and does not say that it failed.
  bool ask(const Line& question, std::string_view kind, Line& answer,
           std::chrono::seconds patience = kSoon) {
    const std::lock_guard locked(mutex_);
    const Steady::time_point end = Steady::now() + patience;
    is_over_ = is_over_ || !write_all(question.text) || !read_line(answer, end) ||
               answer.value_of("cmd") != kind;
    if (is_over_) return false;
    const std::string_view code = answer.value_of("rc");
    return code.empty() || code == "0";
  }

 private:
  bool write_all(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t written = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
  }

  bool read_line(Line& line, Steady::time_point end) const {
    line.text.reserve(kMaxLine);
    while (line.text.size() < kMaxLine) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Steady::now());
      if (left.count() <= 0) return false;
      constexpr std::chrono::milliseconds kLongest = std::chrono::hours(1);
      pollfd what{.fd = socket_, .events = POLLIN, .revents = 0};
      const int ready = ::poll(&what, 1, static_cast<int>(std::min(left, kLongest).count()));
      if (ready < 0 && errno == EINTR) continue;
      char letter = 0;
      if (ready == 0) continue;
      if (ready < 0 || ::recv(socket_, &letter, 1, 0) != 1) return false;
      line.text += letter;
      if (letter == '\n') return true;
    }
    return false;
  }

  const int socket_;
  std::mutex mutex_;
  bool is_over_ = false;
};

class Pmi1Launcher final : public Launcher {
 public:
  Pmi1Launcher(int socket, unsigned rank, unsigned size)
      : conversation_(socket), rank_(rank), size_(size) {}

  bool begin() {
    Line answer;
    if (!conversation_.ask(Line("cmd=init pmi_version=1 pmi_subversion=1"), "response_to_init",
                           answer)) {
      return false;
    }
    Line names;
    if (!conversation_.ask(Line("cmd=get_my_kvsname"), "my_kvsname", names)) return false;
    job_ = names.value_of("kvsname");
    return !job_.empty();
  }
  void end() {
    Line answer;
    conversation_.ask(Line("cmd=finalize"), "finalize_ack", answer, std::chrono::seconds(1));
  }

  const char* name() const override { return "PMI-1"; }
  unsigned rank() const override { return rank_; }
  unsigned size() const override { return size_; }
  bool may_ask_again() const override { return false; }
  bool is_spawned() const override { return is_spawned_by_pmi(); }

  bool put(const std::string& name, std::span<const std::byte> value) override {
    HexValue hex;
    Line answer;
    return hex.write(value) &&
           conversation_.ask(Line(fmt::format("cmd=put kvsname={} key={}.{} value={}", job_, name,
                                              rank_, hex.c_str())),
                             "put_result", answer);
  }

  bool share(std::chrono::seconds patience) override {
    Line answer;
    return conversation_.ask(Line("cmd=barrier_in"), "barrier_out", answer, patience);
  }

  // Nothing can be asked for before all have shared it, nor of another job.
  std::optional<std::size_t> get(Job job, unsigned rank, const std::string& name,
                                 std::chrono::seconds patience, std::span<std::byte> out) override {
    if (job == Job::kParent || patience.count() == 0) return std::nullopt;
    Line answer;
    if (!conversation_.ask(Line(fmt::format("cmd=get kvsname={} key={}.{}", job_, name, rank)),
                           "get_result", answer, patience)) {
      return std::nullopt;
    }
    HexValue hex;
    const std::string_view digits = answer.value_of("value");
    if (digits.size() >= hex.text().size()) return std::nullopt;
    std::copy(digits.begin(), digits.end(), hex.text().begin());
    return hex.read(out);
  }

 private:
  Conversation conversation_;
  const unsigned rank_;
  const unsigned size_;
  std::string job_;
};

std::optional<unsigned> number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? std::nullopt : parse_number(text);
}

}  // namespace

std::unique_ptr<Launcher> talk_pmi1(int socket, unsigned rank, unsigned size) {
  auto launcher = std::make_unique<Pmi1Launcher>(socket, rank, size);
  if (!launcher->begin()) return nullptr;
  return launcher;
}

Found begin_pmi1() {
  if (has_mpi()) return {nullptr, "PMI-1: only the MPI library may talk to the launcher"};
  static Pmi1Launcher* const begun = []() -> Pmi1Launcher* {
    const auto socket = number_in("PMI_FD");
    const auto rank = number_in("PMI_RANK");
    const auto size = number_in("PMI_SIZE");
    if (!socket || !rank || !size || *rank >= *size) return nullptr;
    static Pmi1Launcher launcher(static_cast<int>(*socket), *rank, *size);
    if (!launcher.begin()) return nullptr;
    // A launcher takes an end without a word for a crash.
    at_exit_of_this_process([] { begun->end(); });
    return &launcher;
  }();
  if (begun == nullptr) return {nullptr, "PMI-1: the launcher does not answer"};
  return {begun, ""};
}

}  // namespace pullman::launch
