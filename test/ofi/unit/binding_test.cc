#include "ofi/endpoint/binding.h"

#include <rdma/fi_errno.h>

#include "domain.h"

namespace pullman::ofi::test {
namespace {

// The bindings of an endpoint, without operations or NICs.
struct Bound {
  explicit Bound(RemoteAccess::Counts counts = RemoteAccess::Counts::kImmediateData)
      : remote_access(transport, connections, lanes, regions, counts) {
    handle.fid.fclass = FI_CLASS_EP;
    handle.lane = &lanes.own();
  }
  ~Bound() { binding.detach_all(); }

  int bind(fid& other, std::uint64_t flags) { return binding.bind(handle, other, flags); }

  TestDomain domain;
  fi_info info{};
  Regions regions{false};
  Activity activity;
  Lanes lanes;
  Transport transport{info, {}};
  Connections connections{transport, activity};
  OutstandingOperations operations{connections};
  ReceivePoster poster{transport, connections, operations, false};
  MultiReceiver multi_receiver{lanes, poster, operations};
  RemoteAccess remote_access;
  EndpointProgress progress{transport,     activity,           multi_receiver,
                            remote_access, domain->triggers(), EndpointProgress::Target::kNo};
  SharedReceiver shared_receiver{lanes.own(), transport, connections, operations, poster, activity};
  EndpointBinding binding{*domain,       lanes,    connections,     operations,
                          remote_access, progress, shared_receiver, {}};
  EndpointHandle handle;
};

}  // namespace

TEST_CASE("a queue is bound once for each direction, and for one at least") {
  Bound one;
  CompletionQueue& queue = one.domain.queue();
  CHECK(one.bind(queue.fid, FI_SELECTIVE_COMPLETION) == -FI_EBADFLAGS);
  CHECK(one.bind(queue.fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION) == 0);
  CHECK(one.lanes.own().bindings.send_queue == &queue);
  CHECK(one.lanes.own().bindings.selective_sends);
  CHECK(one.lanes.own().bindings.receive_queue == nullptr);

  CHECK(one.bind(queue.fid, FI_TRANSMIT) == -FI_EINVAL);

  CHECK(one.bind(queue.fid, FI_RECV) == 0);
  CHECK_FALSE(one.lanes.own().bindings.selective_receives);
}

TEST_CASE("nothing can be bound to a lane that is enabled") {
  Bound one;
  one.lanes.own().receives = true;
  CHECK(one.bind(one.domain.queue().fid, FI_RECV) == -FI_EOPBADSTATE);
}

TEST_CASE("objects of another domain are refused") {
  Bound one;
  TestDomain other;
  CHECK(one.bind(other.queue().fid, FI_RECV) == -FI_EDOMAIN);
  CHECK(one.bind(other.counter().fid, FI_RECV) == -FI_EDOMAIN);
}

TEST_CASE("a counter stays attached while it is bound, but not after deferred work that used it") {
  Bound one;
  Counter& bound = one.domain.counter();
  Counter& used = one.domain.counter();
  REQUIRE(one.bind(bound.fid, FI_SEND) == 0);
  one.binding.attach(used);
  CHECK(bound.endpoints().size() == 1);
  CHECK(used.endpoints().size() == 1);

  one.binding.detach(bound);
  one.binding.detach(used);

  CHECK(bound.endpoints().size() == 1);
  CHECK(used.endpoints().empty());
  CHECK(fi_close(&bound.fid) == -FI_EBUSY);
}

TEST_CASE("without FI_RMA_EVENT reads by peers are not counted, and writes are") {
  Bound one;
  Counter& counter = one.domain.counter();
  REQUIRE(one.bind(counter.fid, FI_REMOTE_READ) == 0);
  CHECK_FALSE(one.remote_access.counts(counter));

  REQUIRE(one.bind(counter.fid, FI_REMOTE_WRITE) == 0);

  CHECK(one.remote_access.counts(counter));
  CHECK(one.remote_access.counts_any(FI_REMOTE_WRITE));
  CHECK_FALSE(one.remote_access.counts_any(FI_REMOTE_READ));
}

TEST_CASE("with FI_RMA_EVENT reads by peers are counted") {
  Bound one(RemoteAccess::Counts::kAll);
  Counter& counter = one.domain.counter();
  REQUIRE(one.bind(counter.fid, FI_REMOTE_READ) == 0);
  CHECK(one.remote_access.counts(counter));
  CHECK(one.remote_access.counts_any(FI_REMOTE_READ));
  CHECK_FALSE(one.remote_access.counts_any(FI_REMOTE_WRITE));
}

TEST_CASE("before its NICs are open an endpoint has no peers and nothing to do") {
  Bound one;
  CHECK(one.connections.connect(3, Address()) == 0);
  CHECK(one.connections.peer(3) == kAnyPeer);
  CHECK(one.connections.status(3) == Status::kOk);
  one.connections.remove(3);

  one.progress.progress();
  CHECK(one.progress.prepare_wait());

  CHECK(one.activity.turns() == 2);
  CHECK(one.activity.is_waiting());
  CHECK(one.progress.wait_descriptor() == -1);
  one.progress.progress();
  CHECK_FALSE(one.activity.is_waiting());
}

}  // namespace pullman::ofi::test
