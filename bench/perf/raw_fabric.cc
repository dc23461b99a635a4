#include "raw_fabric.h"

#include <fmt/format.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>

#include "options.h"
#include "raw_interface.h"

namespace perf {

namespace {

constexpr std::size_t kReceives = 512;

void expect(int result, const char* call) {
  if (result != 0) throw Failure(fmt::format("{} failed: {}", call, fi_strerror(-result)));
}

}  // namespace

RawFabric::RawFabric(const std::string& host, const std::string& provider) {
  const RawInterface interface = find_raw_interface(host);
  Owned<fi_info> hints(fi_allocinfo());
  hints->caps = FI_MSG;
  hints->mode = FI_CONTEXT | FI_MSG_PREFIX;
  hints->ep_attr->type = FI_EP_DGRAM;
  hints->domain_attr->mr_mode = FI_MR_LOCAL;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->fabric_attr->prov_name = provider.empty() ? nullptr : ::strdup(provider.c_str());
  fi_info* found = nullptr;
  const int result = fi_getinfo(FI_VERSION(1, 17), interface.host.c_str(), nullptr, FI_SOURCE,
                                hints.get(), &found);
  if (result != 0) {
    throw Failure(fmt::format("libfabric has no datagram provider for {} ({}): {}", interface.name,
                              interface.host, fi_strerror(-result)));
  }
  info_.reset(found);
  prefix_ = (info_->mode & FI_MSG_PREFIX) != 0 ? info_->ep_attr->msg_prefix_size : 0;
  packet_bytes_ = info_->ep_attr->max_msg_size - prefix_;
  // The udp provider says 1472 whatever the interface carries.
  if (std::string_view(info_->fabric_attr->prov_name) == "udp") {
    packet_bytes_ = std::min(packet_bytes_, interface.datagram_bytes());
  }
  inject_ = info_->tx_attr->inject_size >= packet_bytes_ + prefix_;
  open();
}

void RawFabric::open() {
  fid_fabric* fabric = nullptr;
  expect(fi_fabric(info_->fabric_attr, &fabric, nullptr), "fi_fabric");
  fabric_.reset(fabric);
  fid_domain* domain = nullptr;
  expect(fi_domain(fabric, info_.get(), &domain, nullptr), "fi_domain");
  domain_.reset(domain);

  fi_av_attr av_attributes{};
  av_attributes.type = info_->domain_attr->av_type;
  fid_av* av = nullptr;
  expect(fi_av_open(domain, &av_attributes, &av, nullptr), "fi_av_open");
  av_.reset(av);

  fi_cq_attr cq_attributes{};
  cq_attributes.format = FI_CQ_FORMAT_MSG;
  cq_attributes.size = 2 * kReceives;
  fid_cq* cq = nullptr;
  expect(fi_cq_open(domain, &cq_attributes, &cq, nullptr), "fi_cq_open");
  send_cq_.reset(cq);
  expect(fi_cq_open(domain, &cq_attributes, &cq, nullptr), "fi_cq_open");
  receive_cq_.reset(cq);

  fid_ep* endpoint = nullptr;
  expect(fi_endpoint(domain, info_.get(), &endpoint, nullptr), "fi_endpoint");
  endpoint_.reset(endpoint);
  expect(fi_ep_bind(endpoint, &av->fid, 0), "fi_ep_bind");
  expect(fi_ep_bind(endpoint, &send_cq_->fid, FI_TRANSMIT), "fi_ep_bind");
  expect(fi_ep_bind(endpoint, &receive_cq_->fid, FI_RECV), "fi_ep_bind");
  expect(fi_enable(endpoint), "fi_enable");
  learn_address();

  const std::size_t receives = std::min<std::size_t>(kReceives, info_->rx_attr->size);
  send_memory_.resize(prefix_ + packet_bytes_);
  receive_memory_.resize(receives * (prefix_ + packet_bytes_));
  contexts_.resize(receives);
  lent_ = receives;
  register_memory();
  for (std::size_t buffer = 0; buffer < receives; ++buffer) post(buffer);
}

void RawFabric::register_memory() {
  if ((info_->domain_attr->mr_mode & FI_MR_LOCAL) == 0) return;
  fid_mr* region = nullptr;
  expect(fi_mr_reg(domain_.get(), send_memory_.data(), send_memory_.size(), FI_SEND, 0, 0, 0,
                   &region, nullptr),
         "fi_mr_reg");
  send_region_.reset(region);
  expect(fi_mr_reg(domain_.get(), receive_memory_.data(), receive_memory_.size(), FI_RECV, 0, 1, 0,
                   &region, nullptr),
         "fi_mr_reg");
  receive_region_.reset(region);
}

void RawFabric::learn_address() {
  std::size_t length = 0;
  (void)fi_getname(&endpoint_->fid, nullptr, &length);
  address_.resize(length);
  expect(fi_getname(&endpoint_->fid, address_.data(), &length), "fi_getname");
}

void RawFabric::set_peer(const std::vector<std::byte>& address) {
  if (address.size() != address_.size() ||
      fi_av_insert(av_.get(), address.data(), 1, &peer_, 0, nullptr) != 1) {
    throw Failure("the other end's address is of no use here: are both ends of one provider?");
  }
}

void RawFabric::post(std::size_t buffer) {
  const std::size_t bytes = prefix_ + packet_bytes_;
  void* descriptor = receive_region_ ? fi_mr_desc(receive_region_.get()) : nullptr;
  const ssize_t result = fi_recv(endpoint_.get(), receive_memory_.data() + buffer * bytes, bytes,
                                 descriptor, FI_ADDR_UNSPEC, &contexts_[buffer]);
  expect(static_cast<int>(result), "fi_recv");
}

bool RawFabric::send(std::size_t length) {
  const std::size_t bytes = prefix_ + length;
  ssize_t result = 0;
  if (inject_) {
    result = fi_inject(endpoint_.get(), send_memory_.data(), bytes, peer_);
  } else {
    reap_sends();
    if (sending_) return false;
    void* descriptor = send_region_ ? fi_mr_desc(send_region_.get()) : nullptr;
    result = fi_send(endpoint_.get(), send_memory_.data(), bytes, descriptor, peer_, nullptr);
    sending_ = result == 0;
  }
  // Anything but a full queue is the kernel's word about an earlier packet, or a loss like any
  // other.
  return result != -FI_EAGAIN;
}

void RawFabric::reap_sends() {
  fi_cq_msg_entry entry{};
  const ssize_t count = fi_cq_read(send_cq_.get(), &entry, 1);
  if (count == 1) sending_ = false;
  if (count == -FI_EAVAIL) {
    fi_cq_err_entry error{};
    (void)fi_cq_readerr(send_cq_.get(), &error, 0);
    sending_ = false;
  }
}

bool RawFabric::receive(std::span<const std::byte>& packet) {
  if (lent_ < contexts_.size()) {
    post(lent_);
    lent_ = contexts_.size();
  }
  fi_cq_msg_entry entry{};
  const ssize_t count = fi_cq_read(receive_cq_.get(), &entry, 1);
  if (count != 1) {
    if (count != -FI_EAVAIL) return false;
    fi_cq_err_entry error{};  // a datagram that was too long, most likely: its buffer is free again
    (void)fi_cq_readerr(receive_cq_.get(), &error, 0);
    if (error.op_context == nullptr) return false;
    entry.op_context = error.op_context;
    entry.len = prefix_;
  }
  lent_ = static_cast<std::size_t>(static_cast<fi_context*>(entry.op_context) - contexts_.data());
  const std::byte* bytes = receive_memory_.data() + lent_ * (prefix_ + packet_bytes_);
  packet = std::span(bytes + prefix_, entry.len - prefix_);
  return true;
}

}  // namespace perf
