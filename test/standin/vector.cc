#include "standin/vector.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>

#include "standin/endpoint.h"
#include "standin/queues.h"

namespace pullman::standin {
namespace {

AddressVector* self(fid* object) {
  return static_cast<AddressVector*>(reinterpret_cast<fid_av*>(object));
}

int close_vector(fid* object) {
  const Locked locked;
  AddressVector* vector = self(object);
  if (!demand(vector->bound == 0, "an address vector was closed before its endpoint") ||
      !demand(vector->in_flight == 0, "an address vector was closed with resolutions under way")) {
    return -FI_EBUSY;
  }
  delete vector;
  return 0;
}

int bind_vector(fid* object, fid* other, std::uint64_t) {
  const Locked locked;
  if (other->fclass != FI_CLASS_EQ) return -FI_EINVAL;
  self(object)->events = static_cast<EventQueue*>(reinterpret_cast<fid_eq*>(other));
  return 0;
}

int insert(fid_av* object, const void* addresses, std::size_t count, fi_addr_t* results,
           std::uint64_t flags, void* context) {
  const Locked locked;
  auto* vector = static_cast<AddressVector*>(object);
  if (flags != 0 || count != 1) return -FI_ENOSYS;
  if (vector->by_event && vector->events == nullptr) return -FI_ENOEQ;
  Insertion insertion{.vector = vector, .result = results, .context = context};
  std::memcpy(&insertion.address, addresses, sizeof insertion.address);
  insertion.reads_left = world().controls.orders.resolve_reads;
  ++vector->in_flight;
  if (!vector->by_event) return vector->finish(insertion) ? 1 : 0;
  vector->events->insertions.push_back(insertion);
  return 0;
}

int remove(fid_av* object, fi_addr_t* addresses, std::size_t count, std::uint64_t) {
  const Locked locked;
  auto* vector = static_cast<AddressVector*>(object);
  for (std::size_t i = 0; i < count; ++i) {
    if (vector->find(addresses[i]) == nullptr) return -FI_EINVAL;
    for (const Endpoint* endpoint : world().endpoints) {
      demand(!endpoint->sends_to(addresses[i]), "an address was removed under a posted send");
    }
    vector->addresses.erase(addresses[i]);
    ++world().controls.tallies.removals;
  }
  return 0;
}

int look_up(fid_av* object, fi_addr_t address, void* out, std::size_t* length) {
  const Locked locked;
  const sockaddr_in* found = static_cast<AddressVector*>(object)->find(address);
  if (found == nullptr) return -FI_EINVAL;
  std::memcpy(out, found, std::min(*length, sizeof *found));
  *length = sizeof *found;
  return 0;
}

fi_ops vector_fid_ops{sizeof(fi_ops),     close_vector,       bind_vector,       refuse<-FI_ENOSYS>,
                      refuse<-FI_ENOSYS>, refuse<-FI_ENOSYS>, refuse<-FI_ENOSYS>};
fi_ops_av vector_ops{
    sizeof(fi_ops_av), insert,          refuse<-FI_ENOSYS>, refuse<-FI_ENOSYS>, remove,
    look_up,           refuse<nullptr>, refuse<-FI_ENOSYS>};

}  // namespace

AddressVector::AddressVector(bool events_wanted, void* user_context)
    : fid_av{{FI_CLASS_AV, user_context, &vector_fid_ops}, &vector_ops}, by_event(events_wanted) {}

bool AddressVector::finish(const Insertion& insertion) {
  --in_flight;
  ++world().controls.tallies.insertions;
  const std::uint16_t unresolvable = world().controls.orders.unresolvable_port;
  if (unresolvable != 0 && ntohs(insertion.address.sin_port) == unresolvable) {
    *insertion.result = FI_ADDR_NOTAVAIL;
    return false;
  }
  auto record = std::make_unique<sockaddr_in>(insertion.address);
  *insertion.result = reinterpret_cast<fi_addr_t>(record.get());
  addresses.emplace(*insertion.result, std::move(record));
  return true;
}

const sockaddr_in* AddressVector::find(fi_addr_t to) const {
  const auto found = addresses.find(to);
  return demand(found != addresses.end(), "an address was used that is not in the vector")
             ? found->second.get()
             : nullptr;
}

int open_vector(fid_domain*, fi_av_attr* attributes, fid_av** out, void* context) {
  const Locked locked;
  if (attributes->type == FI_AV_TABLE) return -FI_ENOSYS;
  *out = new (std::nothrow) AddressVector((attributes->flags & FI_EVENT) != 0, context);
  return *out != nullptr ? 0 : -FI_ENOMEM;
}

}  // namespace pullman::standin
