// pullman-perf: measures messages between two processes.
#include <fmt/format.h>

#include <csignal>
#include <cstdlib>

#include "options.h"
#include "pullman/pullman.h"
#include "run.h"

namespace {

// The port both ends mean if nobody says one. A server that is to have any, 0, says which it has.
std::uint16_t port_of(const perf::Options& options) {
  if (options.port != 0) return options.port;
  if (std::getenv("PULLMAN_PORT") == nullptr) return perf::kDefaultPort;
  const std::uint16_t port = pullman::Config::from_environment().port;
  if (port == 0 && !options.host.empty()) {
    throw perf::Failure("PULLMAN_PORT is 0, any free port: name the server's, HOST:PORT");
  }
  if (port == 0 && options.raw) {
    throw perf::Failure("PULLMAN_PORT is 0, any free port: bare datagrams need one, --port");
  }
  return port;
}

int run(perf::Options& options) {
  options.keys.apply();
  options.port = port_of(options);
  if (options.raw) return options.host.empty() ? run_raw_server(options) : run_raw_client(options);
  return options.host.empty() ? run_server(options) : run_client(options);
}

}  // namespace

int main(int argc, char** argv) {
  // A reader of the results that went away is a failed write: the other end is told, too.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    perf::Options options;
    int exit_code = 0;
    if (!perf::parse_command_line(argc, argv, options, exit_code)) return exit_code;
    return run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "pullman-perf: {}\n", error.what());
    return 1;
  }
}
