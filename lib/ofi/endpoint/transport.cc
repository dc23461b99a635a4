#include "ofi/endpoint/transport.h"

#include <poll.h>
#include <rdma/providers/fi_log.h>

#include <algorithm>
#include <span>
#include <vector>

#include "ofi/provider.h"

namespace pullman::ofi {

void Transport::open(std::size_t expected_peers) {
  Config config = requested_.config();
  config.max_peers = std::max(config.max_peers, expected_peers);
  if (job_key_) {
    Config::Key& key = config.keys.emplace_back();
    std::ranges::copy(job_key_->bytes(), key.begin());
  }
  struct Wiped {
    ~Wiped() { crypto::wipe(std::as_writable_bytes(std::span(keys))); }
    std::vector<Config::Key>& keys;
  } const wiped{config.keys};
  context_ = std::make_unique<Context>(config);
  close_timeout_ = config.close_timeout;
  descriptor_ = context_->wait_fd();
}

void Transport::close() {
  if (context_ && context_->close() == Status::kTimedOut) {
    FI_WARN(
        &provider(), FI_LOG_EP_CTRL,
        "an endpoint is closed before all that it sent was acknowledged: FI_PULLMAN_CLOSE_TIMEOUT "
        "has expired\n");
  }
  context_.reset();
}

bool Transport::has_work() const {
  pollfd one{.fd = descriptor_, .events = POLLIN, .revents = 0};
  return poll(&one, 1, 0) > 0;
}

}  // namespace pullman::ofi
