#include "fabric.h"

#include <fmt/format.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>

namespace peers {
namespace {

using perf::Failure;

constexpr std::uint64_t kTag = 7;

void check(int result, const char* what) {
  if (result < 0) throw Failure(fmt::format("{}: {}", what, fi_strerror(-result)));
}

Info find(const std::string& provider, const std::string& host) {
  const Info hints(fi_allocinfo());
  hints->ep_attr->type = FI_EP_RDM;
  hints->caps = FI_MSG | FI_TAGGED;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->fabric_attr->prov_name = strdup(provider.c_str());  // freed with the hints
  fi_info* found = nullptr;
  check(fi_getinfo(FI_VERSION(1, 17), host.c_str(), nullptr, FI_SOURCE, hints.get(), &found),
        provider.c_str());
  return Info(found);
}

nlohmann::json name_of(fid_ep& endpoint) {
  std::array<std::uint8_t, 256> name{};
  std::size_t length = name.size();
  check(fi_getname(&endpoint.fid, name.data(), &length), "fi_getname");
  return {{"name", std::vector<std::uint8_t>(name.begin(), name.begin() + length)}};
}

}  // namespace

Fabric::Fabric(const Meeting& meeting, const std::string& provider)
    : info_(find(provider, meeting.control.local_host())),
      out_(meeting.job.size),
      in_(std::max<std::size_t>(1, meeting.job.size)),
      receives_(std::min(info_->rx_attr->size, 2 * meeting.job.window + 8)),
      sends_(std::min(info_->tx_attr->size, meeting.job.window)) {
  for (fi_context2& slot : sends_) free_.push_back(&slot);
  for (fi_context2& slot : receives_) unposted_.push_back(&slot);
  open(receives_.size() + sends_.size());
  meet(meeting);
}

void Fabric::open(std::size_t completions) {
  fid_fabric* fabric = nullptr;
  check(fi_fabric(info_->fabric_attr, &fabric, nullptr), "fi_fabric");
  fabric_.reset(fabric);
  fid_domain* domain = nullptr;
  check(fi_domain(fabric, info_.get(), &domain, nullptr), "fi_domain");
  domain_.reset(domain);

  fi_cq_attr queue_attributes{};
  queue_attributes.size = completions;
  queue_attributes.format = FI_CQ_FORMAT_CONTEXT;
  queue_attributes.wait_obj = FI_WAIT_NONE;
  fid_cq* queue = nullptr;
  check(fi_cq_open(domain, &queue_attributes, &queue, nullptr), "fi_cq_open");
  queue_.reset(queue);
  fi_av_attr address_attributes{};
  address_attributes.type = FI_AV_TABLE;
  address_attributes.count = 1;
  fid_av* addresses = nullptr;
  check(fi_av_open(domain, &address_attributes, &addresses, nullptr), "fi_av_open");
  addresses_.reset(addresses);

  fid_ep* endpoint = nullptr;
  check(fi_endpoint(domain, info_.get(), &endpoint, nullptr), "fi_endpoint");
  endpoint_.reset(endpoint);
  check(fi_ep_bind(endpoint, &queue->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
  check(fi_ep_bind(endpoint, &addresses->fid, 0), "fi_ep_bind");
  check(fi_enable(endpoint), "fi_enable");
}

// Receives are posted before the other end learns the address.
void Fabric::meet(const Meeting& meeting) {
  progress();
  meeting.control.say(name_of(*endpoint_));
  const nlohmann::json word = meeting.control.hear();
  std::vector<std::uint8_t> name;
  if (word.contains("name")) word["name"].get_to(name);
  name.resize(256);  // what the provider reads is there, whatever was said
  if (fi_av_insert(addresses_.get(), name.data(), 1, &peer_, 0, nullptr) != 1) {
    throw Failure("fi_av_insert: the other end's address is not understood");
  }
}

bool Fabric::send(std::size_t bytes) {
  if (bytes <= info_->tx_attr->inject_size) {
    const ssize_t result = fi_tinject(endpoint_.get(), out_.data(), bytes, peer_, kTag);
    if (result != -FI_EAGAIN) check(static_cast<int>(result), "fi_tinject");
    return result == 0;
  }
  if (under_way_ == free_.size()) return false;
  const ssize_t result =
      fi_tsend(endpoint_.get(), out_.data(), bytes, nullptr, peer_, kTag, free_[under_way_]);
  if (result != -FI_EAGAIN) check(static_cast<int>(result), "fi_tsend");
  if (result == 0) ++under_way_;
  return result == 0;
}

void Fabric::progress() {
  while (!unposted_.empty()) {
    const ssize_t result = fi_trecv(endpoint_.get(), in_.data(), in_.size(), nullptr,
                                    FI_ADDR_UNSPEC, kTag, 0, unposted_.back());
    if (result == -FI_EAGAIN) break;
    check(static_cast<int>(result), "fi_trecv");
    unposted_.pop_back();
  }
  const ssize_t count = fi_cq_read(queue_.get(), done_.data(), done_.size());
  if (count == -FI_EAGAIN) return;
  if (count < 0) close_abortively();
  for (ssize_t i = 0; i < count; ++i) {
    auto* slot = static_cast<fi_context2*>(done_[static_cast<std::size_t>(i)].op_context);
    if (slot >= receives_.data() && slot < receives_.data() + receives_.size()) {
      ++received_;
      unposted_.push_back(slot);
    } else {
      free_[--under_way_] = slot;
    }
  }
}

void Fabric::close_abortively() const {
  fi_cq_err_entry error{};
  (void)fi_cq_readerr(queue_.get(), &error, 0);
  throw Failure(fmt::format("an operation failed: {}", fi_strerror(error.err)));
}

}  // namespace peers
