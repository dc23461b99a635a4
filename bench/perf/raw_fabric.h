// Bare datagrams on libfabric, as the best program without a protocol sends them: injected, polled
// with fi_cq_read, receives posted ahead. One endpoint, one peer.
//
// Knows prefixes and registered memory, because some providers ask for them. Does not know tests.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "raw_nic.h"

namespace perf {

class RawFabric final : public RawNic {
 public:
  // `host` is a local address or an interface name. Throws Failure.
  RawFabric(const std::string& host, const std::string& provider);

  const std::vector<std::byte>& address() const override { return address_; }
  void set_peer(const std::vector<std::byte>& address) override;

  std::size_t packet_bytes() const override { return packet_bytes_; }

  std::span<std::byte> outgoing() override {
    return std::span(send_memory_).subspan(prefix_, packet_bytes_);
  }
  bool send(std::size_t length) override;
  bool receive(std::span<const std::byte>& packet) override;

 private:
  struct Closer {
    void operator()(fid_fabric* object) const { fi_close(&object->fid); }
    void operator()(fid_domain* object) const { fi_close(&object->fid); }
    void operator()(fid_cq* object) const { fi_close(&object->fid); }
    void operator()(fid_av* object) const { fi_close(&object->fid); }
    void operator()(fid_ep* object) const { fi_close(&object->fid); }
    void operator()(fid_mr* object) const { fi_close(&object->fid); }
    void operator()(fi_info* object) const { fi_freeinfo(object); }
  };
  template <typename T>
  using Owned = std::unique_ptr<T, Closer>;

  void open();
  void register_memory();
  void learn_address();
  void post(std::size_t buffer);
  void reap_sends();

  Owned<fi_info> info_;
  Owned<fid_fabric> fabric_;
  Owned<fid_domain> domain_;
  Owned<fid_av> av_;
  Owned<fid_mr> send_region_;
  Owned<fid_mr> receive_region_;
  Owned<fid_cq> send_cq_;
  Owned<fid_cq> receive_cq_;
  Owned<fid_ep> endpoint_;  // last: closed first
  std::vector<std::byte> address_;
  fi_addr_t peer_ = FI_ADDR_UNSPEC;
  std::size_t packet_bytes_ = 0;
  std::size_t prefix_ = 0;  // bytes before the payload, both ways
  bool inject_ = false;     // every packet fits the provider's inject size
  bool sending_ = false;    // without inject: the packet in send_memory_ has not left yet
  std::vector<std::byte> send_memory_;
  std::vector<std::byte> receive_memory_;
  std::vector<fi_context> contexts_;  // one per receive buffer
  std::size_t lent_;                  // buffer the caller holds; contexts_.size() if none
};

}  // namespace perf
