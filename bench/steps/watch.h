// A process, watched by ptrace(2): its system calls, and single instructions of it.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <cstdint>
#include <vector>

namespace steps {

class Watch {
 public:
  // Of a child that will be traced, and stop itself (SIGSTOP): waits for that.
  explicit Watch(pid_t child);

  // Runs it until receiving has brought nothing `idle` times in a row.
  void wait_for_idle(int idle);
  // From the next recvfrom() or recvmsg() that brings something to the call of sendto() or
  // sendmsg(): the registers before each instruction.
  std::vector<user_regs_struct> way_of_an_answer();
  void let_go() const;

 private:
  struct Call {
    std::uint64_t number;
    std::int64_t result;
  };
  Call next_call();   // runs it until one has returned
  void run(int how);  // a ptrace request; until it stops again

  pid_t child_;
};

}  // namespace steps
