// How the two ends of a raw measurement agree: lines of JSON over a TCP connection. Bare datagrams
// may get lost; what was agreed may not.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "options.h"

namespace perf {

class RawControl {
 public:
  // Server: waits at options.port for one client. Client: connects to options.host. Throw Failure.
  static RawControl accept(const Options& options);
  static RawControl connect(const Options& options);

  RawControl(RawControl&& other) noexcept;
  RawControl(const RawControl&) = delete;
  RawControl& operator=(const RawControl&) = delete;
  ~RawControl();

  void say(const nlohmann::json& line);
  // Waits with patience; throws Failure if the other end is silent or gone.
  nlohmann::json hear();
  // What has been said, if anything has. One system call when not.
  std::optional<nlohmann::json> poll();

  // This end's address on the way to the other: where the raw endpoint belongs if nobody says
  // which.
  std::string local_host() const;

 private:
  RawControl(int socket, const Options& options);
  std::optional<nlohmann::json> take_line();
  bool read_some(int flags);

  int socket_;
  const Options& options_;
  std::string received_;
};

}  // namespace perf
