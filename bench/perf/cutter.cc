#include "cutter.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <net/if.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>

#include "nft.h"
#include "options.h"

namespace perf {

namespace {

constexpr int kEnd = SIGUSR1;  // from our destructor to the thread

// The signals the thread waits for; blocked in all threads as long as it lives.
sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {kEnd, SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, number);
  return set;
}

ifreq request_for(const std::string& nic) {
  ifreq request{};
  nic.copy(request.ifr_name, IFNAMSIZ - 1);
  return request;
}

// What `ip link set NIC up` and `down` do, without starting a program in the midst of a stream.
void set_link(const std::string& nic, bool up) {
  const int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request = request_for(nic);
  bool good = descriptor >= 0 && ioctl(descriptor, SIOCGIFFLAGS, &request) == 0;
  if (good) {
    const int flags = up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP;
    request.ifr_flags = static_cast<short>(flags);
    good = ioctl(descriptor, SIOCSIFFLAGS, &request) == 0;
  }
  const int error = errno;
  if (descriptor >= 0) close(descriptor);
  if (!good) {
    throw Failure(fmt::format("cannot take {} {}: {}", nic, up ? "up" : "down", strerror(error)));
  }
}

std::string table_of(const std::string& nic) {
  return fmt::format("netdev pullman_cut_{}", if_nametoindex(nic.c_str()));
}

// What arrives is dropped. What leaves is sent to a station that does not exist: a packet that a
// filter drops on its way out is an error the sender hears of, and then it is no silence.
std::string silencing(const Cut& cut) {
  const std::string table = table_of(cut.nic);
  std::string rules = fmt::format("add table {}", table);
  const auto add = [&](const char* hook, const char* verdict) {
    rules += fmt::format(
        "; add chain {0} {1} {{ type filter hook {1} device \"{2}\" priority 0; }}"
        "; add rule {0} {1} {3}",
        table, hook, cut.nic, verdict);
  };
  if (cut.kind != CutKind::kMute) add("ingress", "drop");
  if (cut.kind != CutKind::kDeaf) add("egress", "ether daddr set 02:00:00:00:de:ad");
  return rules;
}

}  // namespace

// To cut or to mend, prepared so that little is left to do when the time comes.
class Deed {
 public:
  Deed(const Cut& cut, bool mend) : cut_(cut), mend_(mend) {
    if (cut_.kind != CutKind::kLink) nft_.emplace();
  }
  void take() {
    if (!nft_) return set_link(cut_.nic, mend_);
    nft_->run(mend_ ? "delete table " + table_of(cut_.nic) : silencing(cut_));
  }

 private:
  Cut cut_;
  bool mend_;
  std::optional<Nft> nft_;  // of those that silence
};

void Cutter::check(const std::vector<Cut>& cuts) {
  if (!cuts.empty() && geteuid() != 0) throw Failure("--cut needs root");
  for (const Cut& cut : cuts) {
    if (if_nametoindex(cut.nic.c_str()) == 0) {
      throw Failure(fmt::format("--cut: there is no interface {}", cut.nic));
    }
    if (cut.kind != CutKind::kLink) Nft(true).run(silencing(cut));
  }
}

Cutter::Cutter(std::vector<Cut> cuts, Clock::time_point start) {
  if (cuts.empty()) return;
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    steps_.push_back({start + cuts[i].at, i, false});
    if (cuts[i].mended_at) steps_.push_back({start + *cuts[i].mended_at, i, true});
    done_.push_back({std::move(cuts[i]), std::nullopt, std::nullopt});
  }
  std::stable_sort(steps_.begin(), steps_.end(),
                   [](const Step& a, const Step& b) { return a.due < b.due; });
  const sigset_t signals = watched_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  thread_ = std::thread([this] { run(); });
}

Cutter::~Cutter() {
  if (!thread_.joinable()) return;
  pthread_kill(thread_.native_handle(), kEnd);
  thread_.join();
  sigset_t signals = watched_signals();
  sigdelset(&signals, kEnd);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

std::vector<CutDone> Cutter::done() const {
  const std::lock_guard lock(mutex_);
  if (!problem_.empty()) throw Failure(problem_);
  return done_;
}

void Cutter::run() {
  try {
    for (const Step& step : steps_) {
      Deed deed(done_[step.cut].cut, step.mend);  // only this thread writes there
      if (!sleep_until(step.due)) break;
      take(step, deed);
    }
    while (sleep_until(Clock::now() + std::chrono::hours(1))) {
    }
  } catch (const Failure& failure) {
    const std::lock_guard lock(mutex_);
    problem_ = failure.what();
  }
  mend_all();
}

void Cutter::take(const Step& step, Deed& deed) {
  Moment moment{Clock::now(), {}};
  deed.take();
  moment.end = Clock::now();
  const std::lock_guard lock(mutex_);
  (step.mend ? done_[step.cut].mended : done_[step.cut].made) = moment;
}

bool Cutter::sleep_until(Clock::time_point due) {
  const sigset_t signals = watched_signals();
  for (;;) {
    const auto left = std::max(std::chrono::nanoseconds(0), due - Clock::now());
    const timespec pause{static_cast<time_t>(left.count() / 1'000'000'000),
                         static_cast<long>(left.count() % 1'000'000'000)};
    const int number = sigtimedwait(&signals, nullptr, &pause);
    if (number < 0 && errno == EINTR) continue;
    if (number < 0) return true;
    if (number == kEnd) return false;
    // Somebody wants the program to end: as it would have, but with the NICs mended.
    mend_all();
    std::signal(number, SIG_DFL);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
    raise(number);
  }
}

void Cutter::mend_all() {
  const std::lock_guard lock(mutex_);
  for (CutDone& one : done_) {
    if (!one.made || one.mended) continue;
    try {
      Deed(one.cut, true).take();
    } catch (const Failure& failure) {
      if (problem_.empty()) problem_ = failure.what();
    }
  }
}

}  // namespace perf
