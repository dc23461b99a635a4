// One FI_EP_DGRAM endpoint as a Port: puts the two queues, the address book and the event queue
// together.
//
// Knows the order in which libfabric's objects must be made and closed; the queues know how packets
// are sent and received. Threads: as Port.
#pragma once

#include <memory>
#include <optional>

#include "nic/error_report.h"
#include "nic/fabric/address_book.h"
#include "nic/fabric/facts.h"
#include "nic/fabric/handles.h"
#include "nic/fabric/receive_ring.h"
#include "nic/fabric/send_queue.h"
#include "nic/own_interface.h"
#include "nic/port.h"
#include "nic/socket.h"

namespace pullman::nic::fabric {

class FabricPort final : public Port {
 public:
  // `info` describes `device`'s endpoint and is adapted to the options. Throws NicError.
  FabricPort(InfoPtr info, const Device& device, const PortOptions& options);
  ~FabricPort() override;

  std::size_t send(std::span<const Outgoing> batch) override {
    return sends_->send(batch, counters_);
  }
  std::size_t receive(std::span<Incoming> batch, std::size_t enough) override {
    return ring_->receive(batch.first(enough), counters_);
  }
  void give_back(std::span<const Incoming> batch) override { ring_->give_back(batch); }
  void resolve(const Address& address, std::uint64_t cookie) override {
    book_->resolve(address, cookie);
  }
  void forget(Destination to) override { book_->forget(to, sends_->posted()); }
  std::size_t poll_events(std::span<PortEvent> events) override;

  const PortLimits& limits() const override { return limits_; }
  const PortCounters& counters() const override { return counters_; }
  const Address& address() const override { return address_; }
  Reach reach(const Address& to) const override { return interface_->reach(to); }
  bool is_own(const Address& to) const override { return interface_->is_own(to); }
  int wait_fd() override;

 private:
  void open_domain(const Device& device);
  void open_vector(const Device& device);
  void open_queues(const Device& device, const PortOptions& options);
  void open_endpoint(const Device& device);
  void learn_address(const Device& device);
  void tie_to_device(const Device& device);
  void size_receive_room(const PortOptions& options);

  void read_event_queue();
  void read_error_event();
  void link_event(std::uint64_t state);
  void wait_for_insertions();

  InfoPtr info_;
  Facts facts_;
  PortLimits limits_;
  PortCounters counters_;
  ErrorReport report_;
  Address address_;
  int socket_ = -1;                        // the kernel's, with the udp provider; else -1
  bool by_event_ = false;                  // addresses are inserted by event
  bool failed_ = false;                    // kFailed was, or is about to be, reported
  std::deque<PortEvent> events_;           // about the port and its link
  std::optional<OwnInterface> interface_;  // once the address is known
  std::optional<WaitSet> wait_set_;        // made by the first wait_fd()

  // In the order in which they are made; closed in the opposite order.
  Handle<fid_fabric> fabric_;
  Handle<fid_eq> event_queue_;  // null if insertions are immediate
  Handle<fid_domain> domain_;
  Handle<fid_av> vector_;
  Handle<fid_cq> send_completions_;
  Handle<fid_cq> receive_completions_;
  std::unique_ptr<AddressBook> book_;
  std::unique_ptr<SendQueue> sends_;
  std::unique_ptr<ReceiveRing> ring_;
  Handle<fid_ep> endpoint_;
};

}  // namespace pullman::nic::fabric
