// The address vector of a fabric port: turns addresses into fi_addr_t, at once or by event, and
// removes them.
//
// A provider that inserts by event writes its result to our memory later. So every insertion in
// flight has memory of its own, which lives until the event with its context has come: neither a
// failure (an error event first, then the normal one) nor closing the port frees it earlier, or
// twice.
#pragma once

#include <rdma/fi_domain.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "nic/port.h"

namespace pullman::nic::fabric {

class AddressBook {
 public:
  struct Format {
    std::uint32_t family = 0;  // fi_info::addr_format
    std::size_t bytes = 0;     // of one address
  };

  // `by_event`: the vector was opened with FI_EVENT and is bound to an event queue, whose events go
  // to handle_complete() and handle_error().
  AddressBook(fid_av* vector, Format format, bool by_event)
      : vector_(vector), format_(format), by_event_(by_event) {}

  void resolve(const Address& address, std::uint64_t cookie);

  // Removes `to` once the first `posted` sends are finished.
  void forget(Destination to, std::uint64_t posted) { forgotten_.push_back({to, posted}); }
  void remove_forgotten(std::uint64_t finished);

  // Handle events of the event queue. A context that is not of an insertion in flight is ignored.
  void handle_error(const void* context);
  void handle_complete(const void* context, std::uint64_t inserted);

  std::size_t take_events(std::span<PortEvent> out);
  bool idle() const { return events_.empty() && forgotten_.empty(); }
  std::size_t in_flight() const { return in_flight_.size(); }

  // Events of the provider are outstanding, and it will not be asked again: leaves their memory to
  // it for good.
  void abandon();

 private:
  struct Insertion {
    std::uint64_t cookie = 0;
    fi_addr_t result = FI_ADDR_NOTAVAIL;
    bool failed = false;
    alignas(16) std::array<std::byte, 128> address{};
  };
  struct Forgotten {
    Destination to;
    std::uint64_t posted;
  };

  bool encode(const Address& address, std::span<std::byte> out) const;
  void insert_at_once(Insertion& insertion);
  void insert_by_event(std::unique_ptr<Insertion> insertion);
  void report(const Insertion& insertion);

  fid_av* vector_;
  Format format_;
  bool by_event_;
  std::vector<std::unique_ptr<Insertion>> in_flight_;
  std::deque<PortEvent> events_;      // for the caller: at most one per resolve()
  std::vector<Forgotten> forgotten_;  // to be removed when their sends are finished
};

}  // namespace pullman::nic::fabric
