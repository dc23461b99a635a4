// One port of a driver, for tests with network namespaces: says what the port says.
//
// Prints a JSON line for each link event, and one for each command read from the standard input:
//   counters    the port's counters, and how often the program woke
//   reach HOST  how the port reaches that host
//   own HOST    whether the port takes it for an address of this host
//   stop, go    stops and resumes polling the port for events
// Ends with its input.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "nic/drivers.h"

namespace {

using namespace pullman::nic;
using Json = nlohmann::ordered_json;

struct Options {
  std::string driver = "udp";
  std::string host;
  std::uint16_t port = 0;
  std::string to;  // a destination for constant traffic
  bool sleep = false;
};

void say(const Json& line) {
  fmt::print("{}\n", line.dump());
  std::fflush(stdout);
}

std::string to_word(Reach reach) {
  switch (reach) {
    case Reach::kNone:
      return "none";
    case Reach::kRouted:
      return "routed";
    case Reach::kDirect:
      return "direct";
    case Reach::kOwn:
      return "own";
  }
  return "?";
}

class Watcher {
 public:
  explicit Watcher(const Options& options) : options_(options) {
    driver_ = make_driver(options.driver, "");
    const auto devices = devices_to_use(*driver_, {options.host}, {});
    port_ = driver_->open(devices.front(), {.port = options.port});
    fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
    if (!options.to.empty()) port_->resolve(address(options.to), 1);
    if (options.sleep) port_->wait_fd();
    say({{"event", "open"}, {"address", to_string(port_->address())}});
  }

  int run() {
    while (!ended_) {
      read_commands();
      const bool news = !stopped_ && hear();
      send();
      receive();
      if (!news) rest();
    }
    return 0;
  }

 private:
  Address address(const std::string& text) const {
    std::string why;
    const auto found = parse(text, 9, why);
    if (!found) throw NicError(why);
    return *found;
  }

  void read_commands() {
    std::array<char, 512> text;
    const ssize_t got = read(STDIN_FILENO, text.data(), text.size());
    if (got == 0) ended_ = true;
    if (got <= 0) return;
    commands_.append(text.data(), static_cast<std::size_t>(got));
    for (std::size_t end; (end = commands_.find('\n')) != std::string::npos;) {
      obey(commands_.substr(0, end));
      commands_.erase(0, end + 1);
    }
  }

  void obey(const std::string& command) {
    if (command == "stop") stopped_ = true;
    if (command == "go") stopped_ = false;
    if (command.starts_with("reach ")) {
      const std::string host = command.substr(6);
      return say(
          {{"event", "reach"}, {"to", host}, {"reach", to_word(port_->reach(address(host)))}});
    }
    if (command.starts_with("own ")) {
      const std::string host = command.substr(4);
      return say({{"event", "own"}, {"to", host}, {"own", port_->is_own(address(host))}});
    }
    const PortCounters& counters = port_->counters();
    say({{"event", command},
         {"sent", counters.sent},
         {"received", counters.received},
         {"send_errors", counters.send_errors},
         {"send_refused", counters.send_refused},
         {"bursts_sent", counters.bursts_sent},
         {"offload_refused", counters.offload_refused},
         {"wakes", wakes_}});
  }

  bool hear() {
    std::array<PortEvent, 4> events;
    const std::size_t count = port_->poll_events(events);
    for (std::size_t i = 0; i < count; ++i) hear(events[i]);
    return count != 0;
  }

  void hear(const PortEvent& event) {
    using Kind = PortEvent::Kind;
    if (event.kind == Kind::kResolved) to_ = event.to;
    if (event.kind == Kind::kLinkDown) say({{"event", "link down"}});
    if (event.kind == Kind::kAddressGone) say({{"event", "address gone"}});
    if (event.kind == Kind::kLinkUp) say({{"event", "link up"}});
    if (event.kind == Kind::kFailed) say({{"event", "failed"}});
  }

  void send() {
    if (to_ == kInvalidDestination) return;
    static constexpr std::array<std::byte, 1000> kPacket{};
    std::array<Outgoing, 8> batch;
    batch.fill({.head = kPacket, .payload = {}, .to = to_});
    port_->send(batch);
  }

  void receive() {
    std::array<Incoming, 64> batch;
    const std::size_t got = port_->receive(batch);
    port_->give_back({batch.data(), got});
  }

  // Waits a millisecond, or until there is something to do.
  void rest() {
    std::array<pollfd, 2> what{{{STDIN_FILENO, POLLIN, 0}, {-1, POLLIN, 0}}};
    if (options_.sleep) what[1].fd = port_->wait_fd();
    poll(what.data(), what.size(), options_.sleep ? -1 : 1);
    ++wakes_;
  }

  Options options_;
  std::unique_ptr<Driver> driver_;
  std::unique_ptr<Port> port_;
  Destination to_ = kInvalidDestination;
  std::string commands_;
  bool stopped_ = false;
  bool ended_ = false;
  std::uint64_t wakes_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"One port of a driver: what it says of its link."};
  Options options;
  app.add_option("host", options.host, "name or address of the NIC")->required();
  app.add_option("--driver", options.driver)->capture_default_str();
  app.add_option("--port", options.port);
  app.add_option("--to", options.to, "HOST:PORT to send to all the time");
  app.add_flag("--sleep", options.sleep, "sleep until the port has something");
  CLI11_PARSE(app, argc, argv);
  try {
    return Watcher(options).run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "port-watch: {}\n", error.what());
    return 1;
  }
}
