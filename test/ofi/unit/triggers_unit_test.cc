#include <rdma/fi_errno.h>

#include <vector>

#include "domain.h"
#include "ofi/endpoint/deferred_issuer.h"
#include "ofi/endpoint/lane.h"
#include "ofi/triggers.h"

namespace pullman::ofi::test {
namespace {

const void* context_of(const Deferred& deferred) {
  return std::get<OwnedCall<SendCall>>(std::get<DeferredOperation>(deferred.what).call)
      .call()
      .context;
}

// Records what it is to start, and starts nothing.
class Target final : public DeferredTarget {
 public:
  bool begin(const Deferred& deferred) override {
    if (blocked_by == context_of(deferred)) stuck_ = true;
    if (stuck_) return false;
    begun.push_back(context_of(deferred));
    return true;
  }
  void try_again() override { stuck_ = false; }
  void drop(const Deferred& deferred, Status why) override {
    dropped.push_back(context_of(deferred));
    CHECK(why == Status::kCancelled);
  }

  std::vector<const void*> begun;
  std::vector<const void*> dropped;
  const void* blocked_by = nullptr;

 private:
  bool stuck_ = false;
};

struct Deferring {
  // `contexts[number]` is the context of the operation.
  void add(std::uint64_t threshold, int number) {
    const SendCall call{.context = &contexts[number], .lane = &lane};
    REQUIRE(domain->triggers().add(counter, threshold, Triggers::Counted::kSuccesses,
                                   {.what = DeferredOperation{
                                        &target, DeferredCall(OwnedCall<SendCall>(call))}}) == 0);
  }
  void count(std::uint64_t number) {
    counter.count_many(number);
    domain->triggers().run();
  }

  TestDomain domain;
  Counter& counter = domain.counter();
  Lane lane;
  Target target;
  int contexts[4] = {};
};

}  // namespace

TEST_CASE(
    "operations begin at their threshold, those of one threshold in the order they were added") {
  Deferring one;
  one.add(2, 0);
  one.add(2, 1);
  one.add(1, 2);
  one.add(3, 3);

  one.count(2);

  CHECK(one.target.begun ==
        std::vector<const void*>{&one.contexts[2], &one.contexts[0], &one.contexts[1]});
  one.count(1);
  CHECK(one.target.begun.back() == &one.contexts[3]);
}

TEST_CASE("an operation that cannot begin is tried again before those behind it") {
  Deferring one;
  one.add(1, 0);
  one.add(1, 1);
  one.target.blocked_by = &one.contexts[0];
  one.count(1);
  CHECK(one.target.begun.empty());

  one.target.blocked_by = nullptr;
  CHECK(one.domain->triggers().run());

  CHECK(one.target.begun == std::vector<const void*>{&one.contexts[0], &one.contexts[1]});
  CHECK_FALSE(one.domain->triggers().run());
}

TEST_CASE("an operation that is cancelled is dropped once and never begins") {
  Deferring one;
  one.add(1, 0);
  one.add(1, 1);

  CHECK(one.domain->triggers().cancel(one.lane, &one.contexts[0]));

  CHECK_FALSE(one.domain->triggers().cancel(one.lane, &one.contexts[0]));
  CHECK(one.target.dropped == std::vector<const void*>{&one.contexts[0]});
  one.count(1);
  CHECK(one.target.begun == std::vector<const void*>{&one.contexts[1]});
}

TEST_CASE("operations of a closed endpoint neither begin nor are dropped") {
  Deferring one;
  one.add(1, 0);

  one.domain->triggers().forget(one.target);

  one.count(1);
  CHECK(one.target.begun.empty());
  CHECK(one.target.dropped.empty());
  CHECK_FALSE(one.domain->triggers().refers_to(one.counter));
}

TEST_CASE("deferred work that could never begin is refused") {
  Lane lane;
  lane.sends = lane.receives = true;
  char bytes[2048] = {};
  const iovec segment{bytes, sizeof bytes};
  const SendCall send{.segments = &segment, .count = 1, .lane = &lane};
  const ReceiveCall receive{.segments = &segment, .count = 1, .lane = &lane};
  CHECK(DeferredIssuer::check_work(send) == 0);
  CHECK(DeferredIssuer::check_work(receive) == 0);

  SendCall inject = send;
  inject.flags = FI_INJECT;  // longer than an inject may be
  CHECK(DeferredIssuer::check_work(inject) == -FI_EINVAL);
  ReceiveCall peek = receive;
  peek.flags = FI_PEEK;
  CHECK(DeferredIssuer::check_work(peek) == -FI_ENOSYS);
  ReceiveCall multi = receive;
  multi.flags = FI_MULTI_RECV;
  CHECK(DeferredIssuer::check_work(multi) == -FI_ENOSYS);
  SendCall without_list = send;
  without_list.segments = nullptr;
  CHECK(DeferredIssuer::check_work(without_list) == -FI_EINVAL);
  lane.sends = false;
  CHECK(DeferredIssuer::check_work(send) == -FI_EOPBADSTATE);
}

}  // namespace pullman::ofi::test
