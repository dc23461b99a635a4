#include "watch.h"

#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>

namespace steps {
namespace {

constexpr std::uint64_t kSyscall = 0x050f;  // the instruction, two bytes
constexpr std::size_t kMost = 100'000;      // instructions; an answer takes some thousands

void check(long result, const char* what) {
  if (result < 0) throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(errno)));
}

user_regs_struct registers(pid_t child) {
  user_regs_struct found;
  check(::ptrace(PTRACE_GETREGS, child, nullptr, &found), "PTRACE_GETREGS");
  return found;
}

void wait_for_stop(pid_t child) {
  int status = 0;
  check(::waitpid(child, &status, __WALL), "waitpid()");
  if (!WIFSTOPPED(status)) throw std::runtime_error("what was watched has ended");
}

bool receives(std::uint64_t call) {
  return call == SYS_recvfrom || call == SYS_recvmsg || call == SYS_recvmmsg;
}

bool sends(std::uint64_t call) {
  return call == SYS_sendto || call == SYS_sendmsg || call == SYS_sendmmsg;
}

bool calls_next(pid_t child, std::uint64_t at) {
  errno = 0;
  const long code = ::ptrace(PTRACE_PEEKTEXT, child, at, nullptr);
  return errno == 0 && (static_cast<std::uint64_t>(code) & 0xffff) == kSyscall;
}

}  // namespace

Watch::Watch(pid_t child) : child_(child) {
  wait_for_stop(child);
  check(::ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL),
        "PTRACE_SETOPTIONS");
}

void Watch::run(int how) {
  check(::ptrace(static_cast<__ptrace_request>(how), child_, nullptr, nullptr), "ptrace()");
  wait_for_stop(child_);
}

Watch::Call Watch::next_call() {
  for (;;) {
    run(PTRACE_SYSCALL);
    __ptrace_syscall_info info;
    check(::ptrace(PTRACE_GET_SYSCALL_INFO, child_, sizeof info, &info), "PTRACE_GET_SYSCALL_INFO");
    if (info.op == PTRACE_SYSCALL_INFO_EXIT) return {registers(child_).orig_rax, info.exit.rval};
  }
}

void Watch::wait_for_idle(int idle) {
  for (int seen = 0; seen < idle;) {
    const Call call = next_call();
    if (receives(call.number)) seen = call.result < 0 ? seen + 1 : 0;
  }
}

std::vector<user_regs_struct> Watch::way_of_an_answer() {
  for (Call call{}; !receives(call.number) || call.result <= 0;) call = next_call();
  std::vector<user_regs_struct> way;
  while (way.size() < kMost) {
    run(PTRACE_SINGLESTEP);
    const user_regs_struct& now = way.emplace_back(registers(child_));
    if (sends(now.rax) && calls_next(child_, now.rip)) return way;
  }
  throw std::runtime_error(fmt::format("no answer within {} instructions", kMost));
}

void Watch::let_go() const {
  (void)::kill(child_, SIGKILL);
}

}  // namespace steps
