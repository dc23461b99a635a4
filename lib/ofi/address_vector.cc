#include "ofi/address_vector.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string>

#include "ofi/domain.h"
#include "ofi/endpoint/connections.h"
#include "ofi/event_queue.h"
#include "ofi/fids.h"
#include "ofi/guarded.h"

namespace pullman::ofi {
namespace {

fi_ops_av& vector_operations() {
  static fi_ops_av table {
    .size = sizeof(fi_ops_av),
    .insert =
        [](fid_av* av, const void* addresses, std::size_t count, fi_addr_t* out,
           std::uint64_t flags, void* context) {
          return AddressVector::from(av).insert(addresses, count, out, flags, context);
        },
    .insertsvc =
        [](fid_av* av, const char* node, const char* service, fi_addr_t* out, std::uint64_t flags,
           void* context) {
          return AddressVector::from(av).insert_service(node, service, out, flags, context);
        },
    .insertsym =
        [](fid_av* av, const char* node, std::size_t nodes, const char* service,
           std::size_t services, fi_addr_t* out, std::uint64_t flags, void* context) {
          return AddressVector::from(av).insert_symmetric(node, nodes, service, services, out,
                                                          flags, context);
        },
    .remove = [](fid_av* av, fi_addr_t* numbers, std::size_t count,
                 std::uint64_t) { return AddressVector::from(av).remove(numbers, count); },
    .lookup =
        [](fid_av* av, fi_addr_t number, void* out, std::size_t* length) {
          return AddressVector::from(av).lookup(number, out, length);
        },
    .straddr =
        [](fid_av* av, const void* address, char* out, std::size_t* length) {
          return AddressVector::from(av).text_of(address, out, length);
        },
    .av_set = kRefuse<decltype(fi_ops_av::av_set)>,
#if FI_VERSION_GE(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), FI_VERSION(1, 20))
    .insert_auth_key = kRefuse<decltype(fi_ops_av::insert_auth_key)>,
    .lookup_auth_key = kRefuse<decltype(fi_ops_av::lookup_auth_key)>,
    .set_user_id = kRefuse<decltype(fi_ops_av::set_user_id)>,
#endif
  };
  return table;
}

// More than the number of contexts, because some programs ask for more; the other bits are enough
// for addresses.
constexpr int kMaxContextBits = 16;

constexpr std::size_t kHighestPort = 65535;

// "node7" and 2 give "node9"; a name without a number stays. Returns an empty name if the number is
// out of range.
std::string advance_name(const std::string& name, std::size_t by) {
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  if (by == 0 || digits >= name.size()) return name;
  std::uint64_t number = 0;
  const auto read = std::from_chars(name.data() + digits, name.data() + name.size(), number);
  if (read.ec != std::errc()) return {};
  return name.substr(0, digits) + std::to_string(number + by);
}

// Returns the address with that port; nothing if the port is too high.
std::optional<Address> on_port(std::optional<Address> address, std::size_t port) {
  if (!address || port > kHighestPort) return std::nullopt;
  address->set_port(static_cast<std::uint16_t>(port));
  return address;
}

}  // namespace

AddressVector::AddressVector(Domain& domain, const fi_av_attr& attributes, void* context)
    : fid_av{},
      domain_(domain),
      format_(domain.address_format()),
      reports_events_((attributes.flags & FI_EVENT) != 0),
      expected_(attributes.count),
      context_bits_(static_cast<unsigned>(attributes.rx_ctx_bits)) {
  static fi_ops object = table_of(
      {.close = [](struct fid* plain) { return object_of<AddressVector, fid_av>(plain).close(); },
       .bind = [](struct fid* plain, struct fid* other,
                  std::uint64_t) { return object_of<AddressVector, fid_av>(plain).bind(*other); }});
  fid = {.fclass = FI_CLASS_AV, .context = context, .ops = &object};
  ops = &vector_operations();
  domain_.hold();
}

AddressVector::~AddressVector() {
  if (events_ != nullptr) {
    events_->drop_events_of(fid);
    events_->release();
  }
  domain_.release();
}

int AddressVector::open(fid_domain* domain, fi_av_attr* attributes, fid_av** out, void* context) {
  return guarded([&]() -> int {
    if (attributes == nullptr) return -FI_EINVAL;
    if (attributes->name != nullptr) return -FI_ENOSYS;  // would be shared by processes
    if (attributes->rx_ctx_bits < 0 || attributes->rx_ctx_bits > kMaxContextBits) {
      return -FI_EINVAL;
    }
    auto* vector = new AddressVector(Domain::from(domain), *attributes, context);
    if (attributes->type == FI_AV_UNSPEC) attributes->type = FI_AV_TABLE;
    *out = vector;
    return 0;
  });
}

int AddressVector::bind(struct fid& other) {
  if (other.fclass != FI_CLASS_EQ) return -FI_EINVAL;
  if (events_ != nullptr) return -FI_EINVAL;
  events_ = &object_of<EventQueue, fid_eq>(&other);
  events_->hold();
  return 0;
}

int AddressVector::close() {
  {
    Locked locked(domain_.lock());
    if (!endpoints_.empty()) return -FI_EBUSY;
  }
  delete this;
  return 0;
}

void AddressVector::attach(Connections& endpoint) {
  endpoints_.push_back(&endpoint);
}

void AddressVector::detach(Connections& endpoint) {
  std::erase(endpoints_, &endpoint);
}

void AddressVector::connect_all(Connections& endpoint) const {
  for (fi_addr_t number = 0; number < addresses_.size(); ++number) {
    if (addresses_[number]) endpoint.connect(number, *addresses_[number]);
  }
}

const Address* AddressVector::find(fi_addr_t number) const {
  return number < addresses_.size() && addresses_[number] ? &*addresses_[number] : nullptr;
}

fi_addr_t AddressVector::add(const Address& address) {
  fi_addr_t number = addresses_.size();
  if (free_.empty()) {
    addresses_.push_back(address);
  } else {
    number = free_.back();
    free_.pop_back();
    addresses_[number] = address;
  }
  return number;
}

void AddressVector::insert_one(const std::optional<Address>& address, std::size_t place,
                               Outcome& outcome) {
  int error = FI_EINVAL;
  fi_addr_t number = FI_ADDR_NOTAVAIL;
  if (address && address->port() != 0 && !address->is_any()) {
    error = 0;
    number = add(*address);
    for (Connections* endpoint : endpoints_) {
      const int failed = endpoint->connect(number, *address);
      if (error == 0) error = failed;
    }
    if (error != 0) {
      withdraw(number);
      number = FI_ADDR_NOTAVAIL;
    }
  }
  if (outcome.numbers != nullptr) outcome.numbers[place] = number;
  if (error == 0) ++outcome.inserted;
  if (error != 0) outcome.error = error;
  if ((outcome.flags & FI_SYNC_ERR) != 0) static_cast<int*>(outcome.context)[place] = error;
  if (error != 0 && reports_events_ && events_ != nullptr) {
    fi_eq_err_entry entry{};
    entry.fid = &fid;
    entry.context = outcome.context;
    entry.data = place;
    entry.err = error;
    events_->add_error(entry);
  }
}

int AddressVector::finish(const Outcome& outcome) const {
  if (!reports_events_) {
    return static_cast<int>(outcome.inserted);
  }
  if (events_ == nullptr) return -FI_ENOEQ;
  events_->add(FI_AV_COMPLETE, {const_cast<struct fid*>(&fid), outcome.context, outcome.inserted});
  return 0;
}

int AddressVector::insert(const void* addresses, std::size_t count, fi_addr_t* out,
                          std::uint64_t flags, void* context) {
  return guarded([&]() -> int {
    if (reports_events_ && events_ == nullptr) return -FI_ENOEQ;
    if ((flags & FI_SYNC_ERR) != 0 && (context == nullptr || reports_events_)) {
      return -FI_EBADFLAGS;
    }
    Locked locked(domain_.lock());
    Outcome outcome{.numbers = out, .flags = flags, .context = context};
    const auto* at = static_cast<const std::byte*>(addresses);
    for (std::size_t i = 0; i < count; ++i, at += format_.stride()) {
      const void* one = at;
      if (domain_.address_format() == FI_ADDR_STR) std::memcpy(&one, at, sizeof one);
      insert_one(format_.read(one), i, outcome);
    }
    return finish(outcome);
  });
}

int AddressVector::insert_service(const char* node, const char* service, fi_addr_t* out,
                                  std::uint64_t flags, void* context) {
  return insert_symmetric(node, 1, service, 1, out, flags, context);
}

int AddressVector::insert_symmetric(const char* node, std::size_t nodes, const char* service,
                                    std::size_t services, fi_addr_t* out, std::uint64_t flags,
                                    void* context) {
  return guarded([&]() -> int {
    if (node == nullptr || service == nullptr) return -FI_EINVAL;
    if (reports_events_ && events_ == nullptr) return -FI_ENOEQ;
    Locked locked(domain_.lock());
    Outcome outcome{.numbers = out, .flags = flags, .context = context};
    const int family = domain_.address_format() == FI_SOCKADDR_IN6 ? AF_INET6 : AF_INET;
    const bool numeric =
        Address::resolve({.node = node, .service = service, .family = family, .numeric = true})
            .has_value();
    std::size_t place = 0;
    for (std::size_t i = 0; i < nodes; ++i) {
      const std::string name = numeric ? node : advance_name(node, i);
      auto address = Address::resolve({.node = name.c_str(), .service = service, .family = family});
      if (address && numeric) address->advance(static_cast<std::uint32_t>(i));
      const std::size_t first = address ? address->port() : 0;
      for (std::size_t j = 0; j < services; ++j, ++place) {
        insert_one(on_port(address, first + j), place, outcome);
      }
    }
    return finish(outcome);
  });
}

int AddressVector::remove(const fi_addr_t* numbers, std::size_t count) {
  Locked locked(domain_.lock());
  int result = 0;
  for (std::size_t i = 0; i < count && result == 0; ++i) {
    if (find(numbers[i]) != nullptr) {
      withdraw(numbers[i]);
    } else {
      result = -FI_EINVAL;
    }
  }
  // Operations to peers that never answered have failed and were counted.
  domain_.triggers().run();
  return result;
}

void AddressVector::withdraw(fi_addr_t number) {
  for (Connections* endpoint : endpoints_) endpoint->remove(number);
  addresses_[number].reset();
  free_.push_back(number);
}

int AddressVector::lookup(fi_addr_t number, void* out, std::size_t* length) {
  Locked locked(domain_.lock());
  const Address* address = find(number);
  if (address == nullptr) return -FI_EINVAL;
  *length = format_.write(*address, out, *length);
  return 0;
}

const char* AddressVector::text_of(const void* address, char* out, std::size_t* length) const {
  const auto read = format_.read(address);
  const std::string text = read ? read->uri() : std::string("?");
  if (out != nullptr && *length > 0) {
    std::strncpy(out, text.c_str(), *length - 1);
    out[*length - 1] = '\0';
  }
  *length = text.size() + 1;
  return out;
}

}  // namespace pullman::ofi
