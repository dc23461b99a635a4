// Every instruction between the system call that brought a message and the one that sends its
// answer: tools/steps.py says what they are. Arguments: rounds, and bytes of a message.
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>

#include "ends.h"
#include "watch.h"

namespace {

constexpr const char* kPacketBytes = "1472";  // as on a network of MTU 1500
constexpr int kIdle = 8;                      // turns before a message comes, as in a ping-pong

struct Pipe {
  Pipe() {
    if (::pipe(ends) != 0) throw std::runtime_error("pipe()");
  }
  int ends[2];
};

template <typename End>
pid_t start(const End& end) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody to play with is left then
  try {
    end.run();
    std::_Exit(0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "steps: %s\n", error.what());
    std::_Exit(1);
  }
}

std::string line_of(int fd) {
  std::string line;
  for (char byte; ::read(fd, &byte, 1) == 1 && byte != '\n';) line += byte;
  return line;
}

// In the order in which tools/steps.py names them.
void print(const user_regs_struct& now) {
  std::cout << std::hex << now.rip;
  for (const auto value :
       {now.rax, now.rbx, now.rcx, now.rdx, now.rsi, now.rdi, now.rbp, now.rsp, now.r8, now.r9,
        now.r10, now.r11, now.r12, now.r13, now.r14, now.r15, now.fs_base}) {
    std::cout << ',' << value;
  }
  std::cout << ' ';
}

void watch(int rounds, std::size_t bytes) {
  Pipe address;
  Pipe go;
  const pid_t answering = start(steps::Answer{address.ends[1], rounds, bytes});
  start(steps::Ask{line_of(address.ends[0]), go.ends[0], rounds, bytes});
  steps::Watch watched(answering);
  std::cout << std::ifstream("/proc/" + std::to_string(answering) + "/maps").rdbuf() << '\n';
  for (int round = 0; round < rounds; ++round) {
    watched.wait_for_idle(kIdle);
    if (::write(go.ends[1], "", 1) != 1) throw std::runtime_error("the asking end is gone");
    for (const user_regs_struct& now : watched.way_of_an_answer()) print(now);
    std::cout << '\n';
  }
  watched.let_go();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    // On loopback, whatever the machine has; both ends inherit it.
    ::setenv("PULLMAN_NICS", "lo", 1);
    ::setenv("PULLMAN_SHARED_MEMORY", "0", 1);
    ::setenv("PULLMAN_DRIVER", "udp", 1);
    ::setenv("PULLMAN_PACKET_BYTES", kPacketBytes, 1);
    watch(argc > 1 ? std::atoi(argv[1]) : 5, argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 8);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "steps: %s\n", error.what());
    return 1;
  }
}
