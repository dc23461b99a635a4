// PMI-1, with a launcher that a thread stands for.
#include "launch/pmi1.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace pullman::launch {
namespace {

using std::chrono::seconds;
using Answer = std::function<std::string(const std::string& question)>;

std::string after(const std::string& line, const std::string& name) {
  const auto at = line.find(" " + name + "=");
  if (at == std::string::npos) return {};
  const auto begin = at + name.size() + 2;
  return line.substr(begin, line.find_first_of(" \n", begin) - begin);
}

// Answers each line by what the function says; nothing if that is empty.
class FakeLauncher {
 public:
  explicit FakeLauncher(Answer answer) : answer_(std::move(answer)) {
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_.data()) != 0) std::abort();
    thread_ = std::thread([this] { serve(); });
  }
  ~FakeLauncher() {
    shutdown(ends_[0], SHUT_RDWR);
    thread_.join();
    close(ends_[0]);
    close(ends_[1]);
  }
  FakeLauncher(const FakeLauncher&) = delete;
  FakeLauncher& operator=(const FakeLauncher&) = delete;

  int socket() const { return ends_[0]; }

 private:
  void serve() {
    std::string line;
    char letter = 0;
    while (read(ends_[1], &letter, 1) == 1) {
      line += letter;
      if (letter != '\n') continue;
      const std::string answer = answer_(line);
      line.clear();
      if (send(ends_[1], answer.data(), answer.size(), MSG_NOSIGNAL) < 0) return;
    }
  }

  const Answer answer_;
  std::array<int, 2> ends_{};
  std::thread thread_;
};

// As MPICH's hydra answers.
Answer well_behaved(std::map<std::string, std::string>& values) {
  return [&values](const std::string& line) -> std::string {
    if (line.starts_with("cmd=init ")) {
      return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n";
    }
    if (line == "cmd=get_my_kvsname\n") return "cmd=my_kvsname kvsname=kvs_7\n";
    if (line == "cmd=barrier_in\n") return "cmd=barrier_out\n";
    if (after(line, "kvsname") != "kvs_7") return "cmd=what\n";
    const std::string key = after(line, "key");
    if (line.starts_with("cmd=put ")) {
      values[key] = after(line, "value");
      return "cmd=put_result rc=0 msg=success\n";
    }
    if (!values.contains(key))
      return "cmd=get_result rc=-1 msg=key_" + key + "_not_found value=x\n";
    return "cmd=get_result rc=0 msg=success value=" + values[key] + "\n";
  };
}

std::vector<std::byte> bytes(std::size_t count) {
  std::vector<std::byte> made(count);
  for (std::size_t i = 0; i < count; ++i) made[i] = static_cast<std::byte>(i * 7);
  return made;
}

}  // namespace

TEST_CASE("what one process puts another gets, by its rank") {
  std::map<std::string, std::string> values;
  const FakeLauncher first(well_behaved(values));
  const FakeLauncher other(well_behaved(values));
  const auto one = talk_pmi1(first.socket(), 0, 2);
  const auto two = talk_pmi1(other.socket(), 1, 2);
  REQUIRE(one);
  REQUIRE(two);
  CHECK(two->rank() == 1);
  CHECK(two->size() == 2);
  for (const std::size_t count : {std::size_t{0}, std::size_t{32}, Launcher::kMaxValueBytes}) {
    const std::string name = "card" + std::to_string(count);
    const auto value = bytes(count);
    REQUIRE(one->put(name, value));
    REQUIRE(one->share(seconds(5)));
    REQUIRE(two->share(seconds(5)));
    std::vector<std::byte> out(Launcher::kMaxValueBytes);
    const auto length = two->get(Launcher::Job::kOwn, 0, name, seconds(5), out);
    REQUIRE(length == count);
    out.resize(count);
    CHECK(out == value);
    CHECK_FALSE(two->get(Launcher::Job::kOwn, 1, name, seconds(5), out));
  }
}

TEST_CASE("a value that is too long is not put, nor got into too little room") {
  std::map<std::string, std::string> values;
  const FakeLauncher fake(well_behaved(values));
  const auto launcher = talk_pmi1(fake.socket(), 0, 1);
  REQUIRE(launcher);
  CHECK_FALSE(launcher->put("long", bytes(Launcher::kMaxValueBytes + 1)));
  REQUIRE(launcher->put("short", bytes(32)));
  std::vector<std::byte> out(31);
  CHECK_FALSE(launcher->get(Launcher::Job::kOwn, 0, "short", seconds(5), out));
}

TEST_CASE("what is no hexadecimal value is not got") {
  for (const char* const nonsense : {"0g", "123", "zz"}) {
    std::map<std::string, std::string> values = {{"key.0", nonsense}};
    const FakeLauncher fake(well_behaved(values));
    const auto launcher = talk_pmi1(fake.socket(), 0, 1);
    REQUIRE(launcher);
    std::vector<std::byte> out(32);
    CHECK_FALSE(launcher->get(Launcher::Job::kOwn, 0, "key", seconds(5), out));
  }
}

TEST_CASE("a launcher that does not speak PMI-1 is none") {
  for (const char* const answer : {"", "\n", "cmd=response_to_init rc=-1\n", "hello\n"}) {
    // One that says nothing closes, or it would be waited for.
    const FakeLauncher fake([&](const std::string&) { return std::string(answer); });
    if (*answer == '\0') shutdown(fake.socket(), SHUT_RD);
    CHECK_FALSE(talk_pmi1(fake.socket(), 0, 1));
  }
}

TEST_CASE("after an answer that did not come in time nothing is asked") {
  std::map<std::string, std::string> values;
  std::atomic<int> questions = 0;
  const FakeLauncher fake([&, answer = well_behaved(values)](const std::string& line) {
    ++questions;
    return line == "cmd=barrier_in\n" ? "" : answer(line);
  });
  const auto launcher = talk_pmi1(fake.socket(), 0, 2);
  REQUIRE(launcher);
  CHECK_FALSE(launcher->share(seconds(1)));
  const int asked = questions;
  CHECK_FALSE(launcher->put("name", bytes(8)));
  CHECK(questions == asked);
}

TEST_CASE("an answer without end is given up") {
  const FakeLauncher fake([](const std::string&) { return std::string(100'000, 'x'); });
  CHECK_FALSE(talk_pmi1(fake.socket(), 0, 1));
}

}  // namespace pullman::launch
