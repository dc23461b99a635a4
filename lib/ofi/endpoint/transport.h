// The Pullman context of an endpoint and its NICs. It exists from when the endpoint is enabled, or
// asked for its name, until it is closed. Does not know what the endpoint does with it.
#pragma once

#include <rdma/fabric.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>

#include "crypto/secret.h"
#include "ofi/address.h"
#include "ofi/endpoint/requested_address.h"
#include "pullman/context.h"

namespace pullman::ofi {

class Transport {
 public:
  // Without a key the environment's is used.
  Transport(const fi_info& info, const std::optional<crypto::Secret<32>>& job_key)
      : requested_(RequestedAddress::from(info)), job_key_(job_key) {}

  bool is_open() const { return context_ != nullptr; }
  // Throws Error if the NICs cannot be opened, or there is no key.
  void open(std::size_t expected_peers);
  // Waits until everything that was sent has arrived, at most for the close timeout.
  void close();
  std::chrono::nanoseconds close_timeout() const { return close_timeout_; }

  // Sets the address that it will have. Only before it is open.
  void set_source(const Address& address) { requested_.source = address; }

  // The context, once it is open.
  Context& operator*() const { return *context_; }
  Context* operator->() const { return context_.get(); }

  // Becomes readable when there is work; -1 before it is open. The context stops watching a
  // descriptor that nobody has asked for in a while.
  int wait_descriptor() const { return context_ ? context_->wait_fd() : -1; }
  // Whether the descriptor is readable. Without the lock, once it is open.
  bool has_work() const;

 private:
  RequestedAddress requested_;
  const std::optional<crypto::Secret<32>> job_key_;
  std::unique_ptr<Context> context_;
  std::chrono::nanoseconds close_timeout_{0};
  int descriptor_ = -1;  // for has_work(), which may not call the context
};

}  // namespace pullman::ofi
