#include "nic/fabric/fabric_port.h"

#include <fmt/format.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "base/log.h"
#include "nic/fabric/kernel_socket.h"

namespace pullman::nic::fabric {
namespace {

// How long closing waits for addresses that are being resolved: usnic tries three times, a second
// apart.
constexpr int kInsertionWaits = 5000;
constexpr std::chrono::milliseconds kInsertionWait{1};

// Each packet costs a system call: 2 us, and up to 8 where the sender's call also does the
// receiver's work in the kernel, as between namespaces.
constexpr std::size_t kCallsPerTurn = 16;

// Opens a completion queue of at least `depth` entries, or of what the provider grants: then
// `depth` is reduced.
Handle<fid_cq> open_completions(fid_domain* domain, std::size_t& depth, const std::string& device) {
  fi_cq_attr attributes{};
  attributes.size = depth;
  attributes.format = FI_CQ_FORMAT_MSG;
  // No wait object: with one, the udp provider writes to a pipe for every completion. Its socket
  // serves instead (wait_fd).
  attributes.wait_obj = FI_WAIT_NONE;
  fid_cq* queue = nullptr;
  require_ok(fi_cq_open(domain, &attributes, &queue, nullptr), "open a completion queue", device);
  if (attributes.size != 0) depth = std::min(depth, attributes.size);
  return Handle<fid_cq>(queue);
}

}  // namespace

FabricPort::FabricPort(InfoPtr info, const Device& device, const PortOptions& options)
    : info_(std::move(info)), facts_(facts_of(*info_)), report_(device) {
  const std::size_t most = std::min(device.packet_bytes, facts_.payload_bytes);
  if (facts_.sends_at_once) limits_.packets_per_turn = kCallsPerTurn;
  limits_.packet_bytes = options.packet_bytes != 0 ? options.packet_bytes : most;
  if (limits_.packet_bytes > most) {
    throw NicError(fmt::format("{} carries packets of {} bytes at most, not {}", device.name, most,
                               limits_.packet_bytes));
  }
  open_domain(device);
  open_vector(device);
  open_queues(device, options);
  open_endpoint(device);
  learn_address(device);
  size_receive_room(options);
  interface_.emplace(device, address_, options.link_events);
  ring_->start(endpoint_.get());
  sends_->start(endpoint_.get());
}

FabricPort::~FabricPort() {
  endpoint_.reset();
  wait_for_insertions();
}

void FabricPort::open_domain(const Device& device) {
  fid_fabric* fabric = nullptr;
  require_ok(fi_fabric(info_->fabric_attr, &fabric, nullptr), "open the fabric", device.name);
  fabric_.reset(fabric);
  fid_domain* domain = nullptr;
  require_ok(fi_domain(fabric, info_.get(), &domain, nullptr), "open the domain", device.name);
  domain_.reset(domain);
  if (facts_.resolves_at_once) return;

  fi_eq_attr attributes{};
  attributes.wait_obj = FI_WAIT_NONE;
  fid_eq* queue = nullptr;
  if (fi_eq_open(fabric, &attributes, &queue, nullptr) != 0) return;
  event_queue_.reset(queue);
  // For link events. A provider that has none may refuse.
  if (fi_domain_bind(domain, &queue->fid, 0) != 0) {
    log().debug("{} reports no link events", device.name);
  }
}

// Inserts by event where the provider can: a synchronous insertion may block for seconds (ARP in
// usnic).
void FabricPort::open_vector(const Device& device) {
  fi_av_attr attributes{};
  attributes.type =
      info_->domain_attr->av_type == FI_AV_UNSPEC ? FI_AV_MAP : info_->domain_attr->av_type;
  attributes.flags = FI_EVENT;
  fid_av* vector = nullptr;
  if (event_queue_ != nullptr && fi_av_open(domain_.get(), &attributes, &vector, nullptr) == 0) {
    vector_.reset(vector);
    // Does what fi_av_bind() does, which libfabric 2 warns of.
    by_event_ = vector->fid.ops->bind(&vector->fid, &event_queue_->fid, 0) == 0;
    if (by_event_) return;
    vector_.reset();
  }
  attributes.flags = 0;
  require_ok(fi_av_open(domain_.get(), &attributes, &vector, nullptr), "open an address vector",
             device.name);
  vector_.reset(vector);
}

void FabricPort::open_queues(const Device& device, const PortOptions& options) {
  std::size_t sends = std::clamp<std::size_t>(options.send_packets, 1, facts_.send_depth);
  std::size_t receives = std::clamp<std::size_t>(options.receive_packets, 1, facts_.receive_depth);
  info_->tx_attr->size = sends;
  info_->rx_attr->size = receives;
  send_completions_ = open_completions(domain_.get(), sends, device.name);
  receive_completions_ = open_completions(domain_.get(), receives, device.name);

  std::optional<Slab::Options> send_slots;
  if (!facts_.sends_at_once) {
    send_slots = {.slots = sends,
                  .slot_bytes = facts_.send_prefix + limits_.packet_bytes,
                  .domain = domain_.get(),
                  .registered = facts_.local_registration,
                  .access = FI_SEND,
                  .device = device.name};
  }
  sends_ = std::make_unique<SendQueue>(facts_, send_slots, send_completions_.get());
  const Slab::Options receive_slots{
      .slots = receives,
      .slot_bytes = ReceiveRing::slot_bytes(facts_, limits_.packet_bytes),
      .domain = domain_.get(),
      .registered = facts_.local_registration,
      .access = FI_RECV,
      .device = device.name};
  ring_ = std::make_unique<ReceiveRing>(facts_, limits_.packet_bytes, receive_slots,
                                        receive_completions_.get());
  limits_.receive_packets = receives;
}

void FabricPort::open_endpoint(const Device& device) {
  fid_ep* endpoint = nullptr;
  const int result = fi_endpoint(domain_.get(), info_.get(), &endpoint, nullptr);
  if (result == -FI_EADDRINUSE) {
    throw NicError(fmt::format(
        "the port asked for on {} is in use; choose another, or 0 for any free one", device.name));
  }
  require_ok(result, "open an endpoint", device.name);
  endpoint_.reset(endpoint);
  require_ok(fi_ep_bind(endpoint, &vector_->fid, 0), "bind the address vector", device.name);
  require_ok(fi_ep_bind(endpoint, &send_completions_->fid, FI_TRANSMIT), "bind a completion queue",
             device.name);
  require_ok(fi_ep_bind(endpoint, &receive_completions_->fid, FI_RECV), "bind a completion queue",
             device.name);
  if (event_queue_ != nullptr && fi_ep_bind(endpoint, &event_queue_->fid, 0) != 0) {
    log().debug("endpoints on {} report no events", device.name);
  }
  require_ok(fi_enable(endpoint), "enable the endpoint", device.name);
}

// Only an enabled endpoint knows its port.
void FabricPort::learn_address(const Device& device) {
  alignas(sockaddr_storage) std::array<std::byte, 128> name{};
  std::size_t bytes = name.size();
  require_ok(fi_getname(&endpoint_->fid, name.data(), &bytes), "learn the address", device.name);
  const auto* as_socket = reinterpret_cast<const sockaddr*>(name.data());
  const bool is_socket = info_->addr_format == FI_SOCKADDR ||
                         info_->addr_format == FI_SOCKADDR_IN ||
                         info_->addr_format == FI_SOCKADDR_IN6;
  const auto found =
      is_socket ? from_sockaddr(as_socket, static_cast<socklen_t>(bytes)) : std::nullopt;
  address_ = found ? *found : from_opaque({name.data(), bytes});
  book_ = std::make_unique<AddressBook>(vector_.get(),
                                        AddressBook::Format{info_->addr_format, bytes}, by_event_);
  if (facts_.one_per_read) socket_ = find_socket(as_socket, static_cast<socklen_t>(bytes));
  forbid_fragments(socket_);
  if (shares_subnet(device, address_)) tie_to_device(device);
}

// Ties sending only: packets that arrive by another NIC, because of ARP, are accepted, since no
// other socket would receive them.
void FabricPort::tie_to_device(const Device& device) {
  if (socket_ >= 0) return send_by_device(socket_, interface_name(device, address_));
  log().debug(
      "{}: its provider has no socket that could be bound to it, though another NIC has the "
      "same subnet",
      device.name);
}

// Without a kernel socket under the endpoint there is no descriptor to wait on for packets.
int FabricPort::wait_fd() {
  if (socket_ < 0) return -1;
  if (!wait_set_) {
    wait_set_.emplace();
    if (!wait_set_->add(socket_) || !wait_set_->add_if_any(interface_->fd())) {
      wait_set_.reset();
      return -1;
    }
  }
  return wait_set_->fd();
}

// Packets that arrive before we poll are held by the posted buffers. A provider that posts receives
// to no device, but to a list that it serves when polled, leaves them in the kernel's socket.
void FabricPort::size_receive_room(const PortOptions& options) {
  if (!facts_.one_per_read) return;
  grow_receive_buffer(socket_, options.receive_packets, limits_.packet_bytes);
  limits_.receive_packets = packets_held(socket_, limits_.packet_bytes);
}

std::size_t FabricPort::poll_events(std::span<PortEvent> out) {
  if (event_queue_ != nullptr) read_event_queue();
  report_.look(counters_.errors);
  if (!failed_ && (ring_->broken() || sends_->broken())) {
    failed_ = true;
    events_.push_back({.kind = PortEvent::Kind::kFailed});
  }
  const std::size_t links = interface_->poll(out);
  out = out.subspan(links);
  if (events_.empty() && book_->idle()) return links;

  sends_->reclaim(counters_);
  book_->remove_forgotten(sends_->finished());
  const std::size_t own = std::min(out.size(), events_.size());
  std::copy_n(events_.begin(), own, out.begin());
  events_.erase(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(own));
  return links + own + book_->take_events(out.subspan(own));
}

void FabricPort::read_event_queue() {
  constexpr int kEventsPerPoll = 64;
  for (int i = 0; i < kEventsPerPoll; ++i) {
    std::uint32_t kind = 0;
    fi_eq_entry entry{};
    const ssize_t got = fi_eq_read(event_queue_.get(), &kind, &entry, sizeof entry, 0);
    if (got == -FI_EAVAIL) {
      read_error_event();
    } else if (got < 0) {
      return;
    } else if (kind == FI_AV_COMPLETE) {
      book_->handle_complete(entry.context, entry.data);
    } else if (kind == FI_NOTIFY) {
      link_event(entry.data);
    }
  }
}

void FabricPort::read_error_event() {
  fi_eq_err_entry error{};
  if (fi_eq_readerr(event_queue_.get(), &error, 0) < 0) return;
  if (error.fid == &vector_->fid) {
    book_->handle_error(error.context);  // a normal event follows and ends the insertion
  } else if (!failed_) {
    counters_.errors.note(ErrorClass::kDevice, error.err);
    failed_ = true;
    events_.push_back({.kind = PortEvent::Kind::kFailed});
  }
}

void FabricPort::link_event(std::uint64_t state) {
  if (state == FI_LINK_DOWN) events_.push_back({.kind = PortEvent::Kind::kLinkDown});
  if (state == FI_LINK_UP) events_.push_back({.kind = PortEvent::Kind::kLinkUp});
}

// An insertion in flight writes to the book's memory, and to the event queue, when it ends. If it
// does not end in time both are leaked: that is better than corrupted memory.
void FabricPort::wait_for_insertions() {
  if (book_ == nullptr) return;
  for (int i = 0; book_->in_flight() > 0 && i < kInsertionWaits; ++i) {
    read_event_queue();
    if (book_->in_flight() > 0) std::this_thread::sleep_for(kInsertionWait);
  }
  if (book_->in_flight() == 0) return;
  log().warn("{} address resolutions have not ended; their memory is given up", book_->in_flight());
  book_->abandon();
  static_cast<void>(vector_.release());
  static_cast<void>(domain_.release());
  static_cast<void>(event_queue_.release());
  static_cast<void>(fabric_.release());
}

}  // namespace pullman::nic::fabric
