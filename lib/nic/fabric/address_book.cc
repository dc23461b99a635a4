#include "nic/fabric/address_book.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace pullman::nic::fabric {
namespace {

bool is_socket_family(std::uint32_t family) {
  return family == FI_SOCKADDR || family == FI_SOCKADDR_IN || family == FI_SOCKADDR_IN6;
}

}  // namespace

void AddressBook::resolve(const Address& address, std::uint64_t cookie) {
  auto insertion = std::make_unique<Insertion>();
  insertion->cookie = cookie;
  if (!encode(address, insertion->address)) {
    report(*insertion);
  } else if (by_event_) {
    insert_by_event(std::move(insertion));
  } else {
    insert_at_once(*insertion);
  }
}

// Returns false for an address of another kind than the endpoint's, which would be misread.
bool AddressBook::encode(const Address& address, std::span<std::byte> out) const {
  if (format_.bytes > out.size()) return false;
  if (is_socket_family(format_.family)) {
    sockaddr_storage storage;
    const socklen_t length = to_sockaddr(address, storage);
    if (length == 0 || length != format_.bytes || port_of(address) == 0) return false;
    std::memcpy(out.data(), &storage, length);
    return true;
  }
  if (from_opaque({address.bytes.data(), address.length}).kind != address.kind) return false;
  if (address.length != format_.bytes) return false;
  std::memcpy(out.data(), address.bytes.data(), address.length);
  return true;
}

void AddressBook::insert_at_once(Insertion& insertion) {
  const int inserted =
      fi_av_insert(vector_, insertion.address.data(), 1, &insertion.result, 0, nullptr);
  insertion.failed = inserted != 1;
  report(insertion);
}

void AddressBook::insert_by_event(std::unique_ptr<Insertion> insertion) {
  Insertion& entry = *insertion;
  in_flight_.push_back(std::move(insertion));
  if (fi_av_insert(vector_, entry.address.data(), 1, &entry.result, 0, &entry) >= 0) return;
  // The insertion was refused: no event will come.
  entry.failed = true;
  handle_complete(&entry, 0);
}

void AddressBook::handle_error(const void* context) {
  for (const auto& insertion : in_flight_) {
    if (insertion.get() == context) insertion->failed = true;
  }
}

void AddressBook::handle_complete(const void* context, std::uint64_t inserted) {
  const auto found = std::find_if(in_flight_.begin(), in_flight_.end(),
                                  [context](const auto& entry) { return entry.get() == context; });
  if (found == in_flight_.end()) return;
  if (inserted == 0) (*found)->failed = true;
  report(**found);
  in_flight_.erase(found);
}

void AddressBook::report(const Insertion& insertion) {
  PortEvent event;
  event.cookie = insertion.cookie;
  event.kind = PortEvent::Kind::kResolveFailed;
  if (!insertion.failed && insertion.result != FI_ADDR_NOTAVAIL) {
    event.kind = PortEvent::Kind::kResolved;
    event.to = insertion.result;
  }
  events_.push_back(event);
}

std::size_t AddressBook::take_events(std::span<PortEvent> out) {
  const std::size_t count = std::min(out.size(), events_.size());
  std::copy_n(events_.begin(), count, out.begin());
  events_.erase(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(count));
  return count;
}

void AddressBook::remove_forgotten(std::uint64_t finished) {
  std::erase_if(forgotten_, [&](const Forgotten& entry) {
    if (entry.posted > finished) return false;
    fi_addr_t address = entry.to;
    fi_av_remove(vector_, &address, 1, 0);
    return true;
  });
}

void AddressBook::abandon() {
  for (auto& insertion : in_flight_) static_cast<void>(insertion.release());
  in_flight_.clear();
}

}  // namespace pullman::nic::fabric
