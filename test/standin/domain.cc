#include "standin/domain.h"

#include <rdma/fi_errno.h>

#include <new>

#include "standin/endpoint.h"
#include "standin/queues.h"
#include "standin/vector.h"

namespace pullman::standin {
namespace {

struct Fabric : fid_fabric {
  explicit Fabric(void* user_context);
  Counted counted;
};

Domain* domain_of(fid* object) {
  return static_cast<Domain*>(reinterpret_cast<fid_domain*>(object));
}

int close_fabric(fid* object) {
  const Locked locked;
  delete static_cast<Fabric*>(reinterpret_cast<fid_fabric*>(object));
  return 0;
}

int close_domain(fid* object) {
  const Locked locked;
  Domain* domain = domain_of(object);
  if (!demand(domain->endpoints == 0, "a domain was closed before its endpoints") ||
      !demand(domain->registrations.empty(), "a domain was closed before its registered memory")) {
    return -FI_EBUSY;
  }
  world().domains.erase(domain);
  delete domain;
  return 0;
}

int bind_domain(fid* object, fid* other, std::uint64_t flags) {
  const Locked locked;
  if (other->fclass != FI_CLASS_EQ || flags != 0) return -FI_EINVAL;
  domain_of(object)->events = static_cast<EventQueue*>(reinterpret_cast<fid_eq*>(other));
  return 0;
}

int close_registration(fid* object) {
  const Locked locked;
  auto* registration = static_cast<Registration*>(reinterpret_cast<fid_mr*>(object));
  for (const Endpoint* endpoint : world().endpoints) {
    demand(!endpoint->uses(registration), "memory was unregistered under a posted operation");
  }
  registration->domain.registrations.erase(registration);
  delete registration;
  return 0;
}

int register_memory(fid* object, const void* bytes, std::size_t length, std::uint64_t access,
                    std::uint64_t, std::uint64_t, std::uint64_t flags, fid_mr** out, void*) {
  const Locked locked;
  if (flags != 0 || object->fclass != FI_CLASS_DOMAIN) return -FI_EINVAL;
  Domain& domain = *domain_of(object);
  auto* made = new (std::nothrow) Registration(domain, bytes, length, access);
  if (made == nullptr) return -FI_ENOMEM;
  domain.registrations.insert(made);
  *out = made;
  return 0;
}

int make_completion_queue(fid_domain*, fi_cq_attr* attributes, fid_cq** out, void* context) {
  return open_completion_queue(attributes, out, context);
}

int open_domain(fid_fabric*, fi_info*, fid_domain** out, void* context) {
  const Locked locked;
  auto* made = new (std::nothrow) Domain(context);
  if (made == nullptr) return -FI_ENOMEM;
  world().domains.insert(made);
  *out = made;
  return 0;
}

fi_ops fabric_fid_ops{sizeof(fi_ops),     close_fabric,       refuse<-FI_ENOSYS>,
                      refuse<-FI_ENOSYS>, refuse<-FI_ENOSYS>, refuse<-FI_ENOSYS>,
                      refuse<-FI_ENOSYS>};
fi_ops_fabric fabric_ops{sizeof(fi_ops_fabric), open_domain,        refuse<-FI_ENOSYS>,
                         open_event_queue,      refuse<-FI_ENOSYS>, refuse<-FI_ENOSYS>,
                         refuse<-FI_ENOSYS>};
fi_ops domain_fid_ops{sizeof(fi_ops),     close_domain,       bind_domain,       refuse<-FI_ENOSYS>,
                      refuse<-FI_ENOSYS>, refuse<-FI_ENOSYS>, refuse<-FI_ENOSYS>};
fi_ops_domain domain_ops{sizeof(fi_ops_domain), open_vector,        make_completion_queue,
                         open_endpoint,         refuse<-FI_ENOSYS>, refuse<-FI_ENOSYS>,
                         refuse<-FI_ENOSYS>,    refuse<-FI_ENOSYS>, refuse<-FI_ENOSYS>,
                         refuse<-FI_ENOSYS>,    refuse<-FI_ENOSYS>, refuse<-FI_ENOSYS>};
fi_ops_mr memory_ops{sizeof(fi_ops_mr), register_memory, refuse<-FI_ENOSYS>, refuse<-FI_ENOSYS>};
fi_ops registration_fid_ops{sizeof(fi_ops),     close_registration, refuse<-FI_ENOSYS>,
                            refuse<-FI_ENOSYS>, refuse<-FI_ENOSYS>, refuse<-FI_ENOSYS>,
                            refuse<-FI_ENOSYS>};

Fabric::Fabric(void* user_context)
    : fid_fabric{{FI_CLASS_FABRIC, user_context, &fabric_fid_ops}, &fabric_ops, fi_version()} {}

}  // namespace

Domain::Domain(void* user_context)
    : fid_domain{{FI_CLASS_DOMAIN, user_context, &domain_fid_ops}, &domain_ops, &memory_ops} {}

Registration::Registration(Domain& owner, const void* start, std::size_t length,
                           std::uint64_t permitted)
    : fid_mr{{FI_CLASS_MR, nullptr, &registration_fid_ops}, this, FI_KEY_NOTAVAIL},
      domain(owner),
      first(static_cast<const std::byte*>(start)),
      bytes(length),
      access(permitted) {}

void Domain::report_link(bool up) {
  if (events == nullptr) return;
  const auto state = static_cast<std::uint64_t>(up ? FI_LINK_UP : FI_LINK_DOWN);
  events->events.push_back({FI_NOTIFY, {&fid, fid.context, state}, 0});
}

bool Domain::may_use(const void* descriptor, const void* bytes, std::size_t length,
                     std::uint64_t access) const {
  if (!demand(descriptor != nullptr, "a buffer came without a descriptor")) return false;
  for (const Registration* known : registrations) {
    if (known->mem_desc != descriptor) continue;
    const auto* start = static_cast<const std::byte*>(bytes);
    const bool inside = start >= known->first && start + length <= known->first + known->bytes;
    return demand(inside, "a buffer was outside its registered memory") &&
           demand((known->access & access) == access, "memory was registered for another access");
  }
  return demand(false, "a descriptor was of no registered memory");
}

int open_fabric(fi_fabric_attr*, fid_fabric** out, void* context) {
  const Locked locked;
  *out = new (std::nothrow) Fabric(context);
  return *out != nullptr ? 0 : -FI_ENOMEM;
}

}  // namespace pullman::standin
