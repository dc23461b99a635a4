// The implementation of the API: owns the clock, opens the NICs, and passes everything else to the
// engine.
#include "pullman/context.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "context/attendance.h"
#include "context/callback_queue.h"
#include "context/clock.h"
#include "context/descriptors.h"
#include "context/gate.h"
#include "context/identity.h"
#include "context/nics.h"
#include "context/open_relay.h"
#include "context/progress_thread.h"
#include "context/publisher.h"
#include "context/security.h"
#include "context/self_test.h"
#include "context/service.h"
#include "context/sleeper.h"
#include "context/tracer.h"
#include "context/wait_policy.h"
#include "engine/engine.h"
#include "message/multi_receive.h"
#include "message/multi_request.h"
#include "message/operation.h"
#include "nic/distance.h"
#include "shm/pairs.h"

namespace pullman {
namespace {

std::vector<nic::Port*> ports_of(const std::vector<engine::NicPorts>& nics) {
  std::vector<nic::Port*> ports;
  for (const engine::NicPorts& nic : nics) {
    ports.push_back(nic.command.get());
    ports.push_back(nic.data.get());
  }
  return ports;
}

}  // namespace

struct Context::State final : Attended {
  explicit State(const Secured& secured)
      : config(secured.config),
        tracer(Tracer::make(config, looked_at)),
        gate(config.threads == Config::Threads::kMany ||
             config.progress == Config::Progress::kThread),
        nics(config),
        opened(traced(nics.open())),
        relay(open_relay(config, nics, opened)),
        driver(opened.front().device.driver),
        numa_node(opened.front().device.numa_node),
        sleeper(ports_of(opened), {nics.fd(), config.shared_memory ? pairs.descriptor() : -1}),
        waiting(config.sleep_after),
        self_test(config.self_test ? std::make_unique<SelfTest>(config, opened) : nullptr),
        engine(config, std::move(opened), identity_of(secured, pairs), look()),
        publisher(config, driver) {
    if (relay != nullptr) relay->attach(looked_at, engine);
    if (config.shared_memory) shm::sweep();
    if (config.progress == Config::Progress::kThread) start_thread();
  }

  std::vector<engine::NicPorts> traced(std::vector<engine::NicPorts> ports) {
    return tracer ? tracer->wrap(std::move(ports)) : std::move(ports);
  }

  void start_thread() {
    try {
      thread.emplace(gate, *this);
      thread->start([pins = config.pin_progress, node = numa_node] {
        if (pins) nic::bind_thread_near(node);
      });
    } catch (const std::system_error& error) {
      throw Error(Status::kNoDevice,
                  fmt::format("there is no thread to be had (Config::progress): {}", error.what()));
    }
  }

  Instant look() { return looked_at = read_clock(); }
  // Reads the clock if the message may leave at once, since the RTT is measured from then. A
  // message that waits for the next turn is timed by that turn, so many messages need no reading.
  Instant time_for(const engine::Departure& departure) {
    return departure.timed() ? look() : looked_at;
  }
  Instant time_for(PeerId peer) { return time_for(engine.sending().departure(peer)); }

  // Makes a turn that need not be the last before a sleep. With many threads it is not noted, since
  // another thread may be asleep.
  std::size_t turn(Instant now) {
    if (!gate.many()) {
      sleeper.note_turn();
    } else if (thread) {
      thread->note_turn();
    }
    if (nics.due(now)) [[unlikely]]
      tend_nics(now);
    return progress(now);
  }

  Instant engine_deadline() const {
    const Instant due = engine.next_deadline();
    return relay == nullptr ? due : std::min(due, relay->next_due());
  }

  std::size_t progress(Instant now) {
    std::size_t received = engine.progress(now);
    if (relay != nullptr) [[unlikely]]
      received += relay->progress(now);
    publisher.note_turn(now, engine.collector());
    if (attendance.due(now)) [[unlikely]]
      attendance.call(now);
    return received;
  }

  // Makes a turn that may be the last before a sleep on the descriptor that it returns. Also the
  // progress thread's.
  int make_turn() override {
    const Instant now = look();
    engine.prepare_to_block();
    if (nics.due(now)) tend_nics(now);
    if (progress(now) != 0 || callbacks.any_to_call()) return kMoreToDo;
    if (engine_deadline() <= now) return kMoreToDo;
    const int descriptor = sleeper.descriptor();
    if (descriptor < 0) return kNothingWakes;
    if (!engine.may_sleep()) return kMoreToDo;
    const Instant until = next_deadline(now);
    sleeper.arm(until);
    publisher.note_sleep(now, until, engine.collector());
    return descriptor;
  }

  void call_back(Gate::Hold& held) override { callbacks.call_due(held); }

  void note_sleep(Instant until) override { engine.watched(until); }

  std::optional<Nics::Change> next_change(Instant now) {
    const auto in_use = [this](std::size_t number) { return engine.is_in_use(number); };
    return nics.poll(now, engine.longest_packet(), in_use);
  }

  // Returns when a turn must be made, even if nothing comes until then.
  Instant next_deadline(Instant now) const {
    Instant due = std::min(engine_deadline(), nics.next_deadline());
    if (self_test) due = std::min(due, self_test->next_deadline(now));
    return tracer ? std::min(due, tracer->next_deadline(now)) : due;
  }

  // Passes new NICs and changed addresses to the engine. The trace and the self-test are
  // tended as often, so that a turn need not ask whether there is one.
  void tend_nics(Instant now) {
    if (tracer) tracer->tend(now, engine.failures());
    if (self_test) self_test->tend(now, engine);
    while (auto change = next_change(now)) {
      if (change->from) {
        if (!engine.move_nic(now, *change->from, change->number)) return;
        for (const std::size_t i : {0, 1}) {
          sleeper.swap_ports(2 * *change->from + i, 2 * change->number + i);
        }
        continue;
      }
      if (tracer) change->ports = tracer->wrap(std::move(change->ports));
      nic::Port* const ports[] = {change->ports.command.get(), change->ports.data.get()};
      if (!engine.set_nic(now, change->number, std::move(change->ports))) return;
      for (const std::size_t i : {0, 1}) sleeper.set_port(2 * change->number + i, ports[i]);
    }
  }

  // Called behind a turn of a call that waits until `end`, which has received that much: polls on,
  // yields or sleeps. A thread that should sleep and cannot yields.
  void rest(std::size_t received, Instant end, WaitPolicy::Silence& silence, Gate::Hold& held) {
    using Rest = WaitPolicy::Rest;
    held.let_others_in();
    if (callbacks.any_to_call()) return;
    const Rest due = waiting.after_turn(looked_at, received, silence);
    if (due == Rest::kNone) return;
    if (due == Rest::kYield || sleeper.descriptor() < 0 || !engine.may_sleep()) return yield(held);
    sleep(std::min(next_deadline(looked_at), end), held);
    if (due == Rest::kSleep) engine.watched(read_clock());
  }

  void yield(Gate::Hold& held) {
    Duration took{};
    held.leave_for([&took] {
      const Instant before = read_clock();
      std::this_thread::yield();
      took = read_clock() - before;
    });
    waiting.note_yield(looked_at + took, took);
  }

  // With many threads the sleep is short: a thread that sends while others sleep may set timers
  // that are due before the sleepers' deadlines.
  void sleep(Instant until, Gate::Hold& held) {
    constexpr int kLongestMs = 1;
    const Instant longest = gate.many() ? looked_at + std::chrono::milliseconds(kLongestMs) : until;
    publisher.note_sleep(looked_at, std::min(until, longest), engine.collector());
    if (!gate.many()) return sleeper.sleep(looked_at, until);
    sleeper.arm(until);
    pollfd port{.fd = sleeper.descriptor(), .events = POLLIN, .revents = 0};
    held.leave_for([&] { poll(&port, 1, kLongestMs); });
  }

  // A call that waits, which the progress thread leaves alone.
  class Waiting {
   public:
    explicit Waiting(std::optional<ProgressThread>& thread) : thread_(thread ? &*thread : nullptr) {
      begin();
    }
    ~Waiting() { end(); }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

    // Calls callbacks, which may take long: the progress thread attends meanwhile.
    void call_due(CallbackQueue& queue, Gate::Hold& held) {
      if (!queue.any_to_call()) [[likely]]
        return;
      end();
      queue.call_due(held);
      begin();
    }

   private:
    void begin() {
      if (thread_ == nullptr) return;
      thread_->begin_wait();
      begun_ = true;
    }
    void end() {
      if (std::exchange(begun_, false)) thread_->end_wait();
    }

    ProgressThread* const thread_;
    bool begun_ = false;
  };

  // Makes turns until `done`, which is told how much was received, returns true. Returns false if
  // the timeout expires first, or a callback closes the context.
  template <typename Done>
  bool turn_until(std::chrono::nanoseconds timeout, Gate::Hold& held, Done done) {
    Waiting here(thread);
    const Instant begin = look();
    const CallLength::Noted noted(waiting_calls, begin);
    const Instant end = timeout < kNever - begin ? begin + timeout : kNever;
    WaitPolicy::Silence silence{.since = begin};
    for (Instant now = begin;; now = look()) {
      const std::size_t received = turn(now);
      here.call_due(callbacks, held);
      if (closed) callbacks.call_due(held);  // by a callback: of what that has ended
      if (done(received)) return true;
      if (now >= end || closed || (closing && callbacks.is_in_callback())) return false;
      rest(received, end, silence, held);
    }
  }

  // The same until a condition of requests holds, which may hold already.
  template <typename Done>
  bool wait_until(std::chrono::nanoseconds timeout, Done done) {
    Gate::Hold held(gate);
    return done() || turn_until(timeout, held, [&done](std::size_t) { return done(); });
  }

  Status close(std::chrono::nanoseconds timeout, Gate::Hold& held);

  Config config;
  Instant looked_at{};             // the last reading of the clock
  std::unique_ptr<Tracer> tracer;  // null: nothing is traced
  Gate gate;
  CallbackQueue callbacks{gate};
  Nics nics;
  std::vector<engine::NicPorts> opened;  // moved into the engine on construction
  std::unique_ptr<relay::Relay> relay;   // null: none
  std::string driver;
  int numa_node;  // of the first NIC; negative: unknown
  shm::SegmentPairs pairs;
  Sleeper sleeper;
  WaitPolicy waiting;
  std::unique_ptr<SelfTest> self_test;  // null: not asked for
  engine::Engine engine;
  Publisher publisher;
  Attendance attendance;
  CallLength waiting_calls;
  std::optional<Status> closed;  // the result of close()
  bool closing = false;          // close() is to end the progress thread: callbacks wait no longer
  std::optional<ProgressThread> thread;
};

Context::Context(const Config& config) {
  config.validate();
  require_descriptors();
  try {
    state_ = std::make_unique<State>(secure(config));
  } catch (const nic::NicError& error) {
    throw Error(Status::kNoDevice, error.what());
  }
}

// In a child of fork() all that the state has is the parent's, which goes on using it.
Context::~Context() {
  if (is_inherited()) {
    static_cast<void>(state_.release());
  } else {
    close();
  }
}

bool Context::is_inherited() const {
  return state_->gate.is_inherited();
}

CallbackRequest::CallbackRequest(Context& context, Callback callback)
    : state_(std::make_shared<State>(*this, context.state_->callbacks, std::move(callback))) {
  on_done = [](Request& done) {
    State& state = *static_cast<CallbackRequest&>(done).state_;
    state.queue.push(state);
  };
}

CallbackRequest::~CallbackRequest() {
  if (state_->is_linked()) state_->queue.remove(*state_);
}

telemetry::Rows Context::Service::rows(Context& context, Activity& activity) {
  State& state = *context.state_;
  Gate::Hold held(state.gate);
  const Instant now = state.look();
  activity = {.at = now,
              .call_begun = state.waiting_calls.begun(),
              .has_thread = state.thread.has_value(),
              .is_closed = state.closed.has_value(),
              .attended_at = state.thread ? state.thread->attended_at() : now};
  return state.publisher.look(now, state.engine.collector());
}

std::filesystem::path Context::Service::counters(Context& context) {
  Gate::Hold held(context.state_->gate);
  return context.state_->publisher.path();
}

void Context::Service::attend(Context& context, CallbackRequest& what, int descriptor) {
  State& state = *context.state_;
  Gate::Hold held(state.gate);
  state.attendance.begin(what);
  state.callbacks.set_own(&what);
  if (descriptor >= 0) state.sleeper.add(descriptor);
}

void Context::Service::end_attendance(Context& context, int descriptor) {
  State& state = *context.state_;
  Gate::Hold held(state.gate);
  state.attendance.end();
  if (descriptor >= 0) state.sleeper.remove(descriptor);
  state.callbacks.set_own(nullptr);
}

std::string Context::address() const {
  Gate::Hold held(state_->gate);
  return nic::to_string(state_->engine.address());
}

std::vector<std::string> Context::addresses() const {
  Gate::Hold held(state_->gate);
  std::vector<std::string> texts;
  for (const nic::Address& address : state_->engine.addresses()) {
    texts.push_back(nic::to_string(address));
  }
  return texts;
}

std::string Context::driver() const {
  return state_->driver;
}

PeerId Context::connect(std::string_view address) {
  std::string why;
  const auto parsed = nic::parse(address, 0, why);  // without the lock: it may resolve a name
  if (!parsed) throw Error(Status::kInvalidArgument, why);
  if (nic::port_of(*parsed) == 0 && parsed->kind != 255) {
    throw Error(Status::kInvalidArgument,
                fmt::format("'{}' has no port: write HOST:PORT, as address() says it", address));
  }
  Gate::Hold held(state_->gate);
  const auto to = state_->relay == nullptr ? parsed : state_->relay->address_to_call(*parsed);
  if (!to) {
    throw Error(Status::kUnreachable,
                fmt::format("no way to {}: no NIC reaches it, and there is no route for it among "
                            "those of the relay (Config::relay, PULLMAN_RELAY)",
                            address));
  }
  const auto connected = state_->engine.connect(state_->look(), *to);
  if (connected.status == Status::kUnreachable) {
    throw Error(Status::kUnreachable,
                fmt::format("no way to {}: none of our NICs in use has an address of that family; "
                            "pullman-info shows them, Config::nics and PULLMAN_NICS name others",
                            address));
  }
  if (connected.status != Status::kOk) {
    throw Error(connected.status, to_sentence(connected.status));
  }
  if (state_->engine.inspector().is_self(connected.peer)) {
    log().info("{} is this process itself", address);
  }
  return connected.peer;
}

PeerId Context::connect(const std::vector<std::string>& addresses) {
  std::string why = "there is no address";
  std::vector<nic::Address> parsed;
  for (const std::string& address : addresses) {
    const auto one = nic::parse(address, 0, why);
    if (!one) break;
    parsed.push_back(*one);
  }
  if (parsed.empty() || parsed.size() != addresses.size()) {
    throw Error(Status::kInvalidArgument, why);
  }
  const std::size_t nearest = [&] {
    Gate::Hold held(state_->gate);
    return state_->engine.nearest(parsed);
  }();
  return connect(addresses[nearest]);
}

std::optional<PeerId> Context::accept() {
  Gate::Hold held(state_->gate);
  return state_->engine.accept();
}
PeerState Context::peer_state(PeerId peer) const {
  Gate::Hold held(state_->gate);
  return state_->engine.inspector().peer_state(peer);
}
bool Context::is_self(PeerId peer) const {
  Gate::Hold held(state_->gate);
  return state_->engine.inspector().is_self(peer);
}
bool Context::shares_memory(PeerId peer) const {
  Gate::Hold held(state_->gate);
  return state_->engine.inspector().shares_memory(peer);
}
Status Context::peer_status(PeerId peer) const {
  Gate::Hold held(state_->gate);
  return state_->engine.inspector().peer_status(peer);
}

Status Context::send(PeerId peer, Tag tag, std::span<const std::byte> bytes, Request& request) {
  Gate::Hold held(state_->gate);
  const engine::Departure departure = state_->engine.sending().departure(peer);
  if (state_->engine.sending().append(departure, tag, bytes, request)) return Status::kOk;
  return state_->engine.sending().send(state_->time_for(departure), departure, peer, tag, bytes,
                                       request);
}

Status Context::receive(PeerId source, Tag tag, Tag ignore, std::span<std::byte> buffer,
                        Request& request) {
  Gate::Hold held(state_->gate);
  return state_->engine.matching().receive(state_->looked_at, source, tag, ignore, buffer, request);
}

bool Context::cancel(Request& request) {
  Gate::Hold held(state_->gate);
  return state_->engine.matching().cancel(request);
}

bool Context::cancel(MultiReceive& receive) {
  return cancel(MultiReceive::State::of(receive).posted());
}

Status Context::send(PeerId peer, Tag tag, std::span<const std::byte> bytes,
                     const SendOptions& options, Request& request) {
  const std::span<const std::byte> whole[] = {bytes};
  return send(peer, tag, ConstSegments(whole), options, request);
}

Status Context::send(PeerId peer, Tag tag, ConstSegments segments, const SendOptions& options,
                     Request& request) {
  Gate::Hold held(state_->gate);
  engine::Sending& sending = state_->engine.sending();
  const engine::Departure departure = sending.departure(peer);
  return sending.submit(state_->time_for(departure), departure,
                        {.peer = peer, .tag = tag, .segments = segments, .options = options},
                        request);
}

Status Context::send(PeerId peer, Tag tag, const Packer& packer, std::uint64_t length,
                     const SendOptions& options, Request& request) {
  Gate::Hold held(state_->gate);
  return state_->engine.sending().submit(
      state_->time_for(peer),
      {.peer = peer, .tag = tag, .packer = &packer, .length = length, .options = options}, request);
}

Status Context::send(std::span<const PeerId> peers, Tag tag, SharedBytes message,
                     const SendOptions& options, MultiRequest& request) {
  if (!request.done()) return Status::kBusy;
  auto& sends = MultiRequest::State::of(request);
  sends.begin(peers.size(), std::move(message));
  for (std::size_t i = 0; i < peers.size(); ++i) {
    Request& one = sends.request(i);
    if (send(peers[i], tag, sends.message(), options, one) != Status::kBusy) continue;
    // The send did not begin, so its request made no callback; finish() makes it.
    auto& op = Request::Operation::of(one);
    op.begin(Request::Operation::Kind::kSend, peers[i], tag);
    op.finish(Status::kBusy, 0);
  }
  return sends.end();
}

Status Context::receive(PeerId source, Tag tag, Tag ignore, std::span<std::byte> buffer,
                        const ReceiveOptions& options, Request& request) {
  const std::span<std::byte> whole[] = {buffer};
  return receive(source, tag, ignore, Segments(whole), options, request);
}

Status Context::receive(PeerId source, Tag tag, Tag ignore, Segments segments,
                        const ReceiveOptions& options, Request& request) {
  Gate::Hold held(state_->gate);
  return state_->engine.matching().submit(
      state_->looked_at,
      {.source = source, .tag = tag, .ignore = ignore, .segments = segments, .options = options},
      request);
}

Status Context::receive(PeerId source, Tag tag, Tag ignore, std::span<std::byte> buffer,
                        const ReceiveOptions& options, MultiReceive& receive) {
  Gate::Hold held(state_->gate);
  return state_->engine.matching().submit(
      state_->looked_at, {.source = source, .tag = tag, .ignore = ignore, .options = options},
      buffer, receive);
}

std::optional<Probe> Context::probe(PeerId source, Tag tag, Tag ignore, std::uint8_t space) {
  Gate::Hold held(state_->gate);
  return state_->engine.matching().probe(source, tag, ignore, space);
}

std::optional<Probe> Context::next_unexpected(std::uint8_t space) {
  Gate::Hold held(state_->gate);
  return state_->engine.matching().next_unexpected(space);
}

std::optional<Probe> Context::claim(PeerId source, Tag tag, Tag ignore, std::uint8_t space) {
  Gate::Hold held(state_->gate);
  return state_->engine.matching().claim(source, tag, ignore, space);
}

Status Context::receive_claimed(const Claimed& claimed, std::span<std::byte> buffer,
                                Request& request) {
  const std::span<std::byte> whole[] = {buffer};
  return receive_claimed(claimed, Segments(whole), request);
}

Status Context::receive_claimed(const Claimed& claimed, Segments segments, Request& request) {
  Gate::Hold held(state_->gate);
  return state_->engine.matching().receive_claimed(state_->looked_at, claimed, segments, request);
}

Status Context::discard(const Claimed& claimed) {
  Gate::Hold held(state_->gate);
  return state_->engine.matching().discard(state_->looked_at, claimed);
}

Status Context::register_region(std::uint64_t key, std::span<std::byte> bytes, Access access) {
  Gate::Hold held(state_->gate);
  return state_->engine.remote_memory().add_region(key, bytes, access) ? Status::kOk
                                                                       : Status::kInvalidArgument;
}

std::uint64_t Context::register_region(std::span<std::byte> bytes, Access access) {
  Gate::Hold held(state_->gate);
  return state_->engine.remote_memory().add_region(bytes, access);
}

bool Context::unregister_region(std::uint64_t key) {
  Gate::Hold held(state_->gate);
  return state_->engine.remote_memory().remove_region(key);
}

Status Context::put(PeerId peer, const RemotePlace& place, std::span<const std::byte> bytes,
                    const PutOptions& options, Request& request) {
  const std::span<const std::byte> whole[] = {bytes};
  return put(peer, place, ConstSegments(whole), options, request);
}

Status Context::put(PeerId peer, const RemotePlace& place, ConstSegments segments,
                    const PutOptions& options, Request& request) {
  Gate::Hold held(state_->gate);
  return state_->engine.remote_memory().put(state_->time_for(peer), peer, place, segments, options,
                                            request);
}

Status Context::get(PeerId peer, const RemotePlace& place, std::span<std::byte> buffer,
                    Request& request) {
  const std::span<std::byte> whole[] = {buffer};
  return get(peer, place, Segments(whole), request);
}

Status Context::get(PeerId peer, const RemotePlace& place, Segments segments, Request& request) {
  Gate::Hold held(state_->gate);
  return state_->engine.remote_memory().get(state_->time_for(peer), peer, place, segments, request);
}

Status Context::atomic(PeerId peer, const RemotePlace& place, const Atomic& atomic,
                       Request& request) {
  Gate::Hold held(state_->gate);
  return state_->engine.remote_memory().atomic(state_->time_for(peer), peer, place, atomic,
                                               request);
}

std::optional<RemoteEvent> Context::take_event() {
  Gate::Hold held(state_->gate);
  return state_->engine.remote_memory().take_event();
}

RemoteUse Context::remote_use() const {
  Gate::Hold held(state_->gate);
  return state_->engine.remote_memory().use();
}

RemoteUse Context::remote_use(std::uint64_t key) const {
  Gate::Hold held(state_->gate);
  return state_->engine.remote_memory().use(key);
}

std::size_t Context::progress() {
  Gate::Hold held(state_->gate);
  const std::size_t received = state_->turn(state_->look());
  state_->callbacks.call_due(held);
  held.let_others_in();  // a loop of these calls would otherwise keep the lock
  return received;
}

std::size_t Context::progress_again() {
  constexpr Duration kJustNow = std::chrono::microseconds(20);
  {
    Gate::Hold held(state_->gate);
    if (!state_->engine.has_pending_tx() && read_clock() - state_->looked_at < kJustNow) return 0;
  }
  return progress();
}

bool Context::test(Request& request) {
  if (!request.done()) progress();
  return request.done();
}

std::size_t Context::wait_for_arrival(std::chrono::nanoseconds timeout) {
  std::size_t received = 0;
  Gate::Hold held(state_->gate);
  state_->turn_until(timeout, held, [&received](std::size_t now) {
    received = now;
    return now != 0;
  });
  return received;
}

bool Context::test(MultiRequest& request) {
  if (!request.done()) progress();
  return request.done();
}

bool Context::test(MultiReceive& receive) {
  const auto news = [&] { return receive.has_message() || receive.done(); };
  if (!news()) progress();
  return news();
}

Status Context::wait(Request& request, std::chrono::nanoseconds timeout) {
  const bool done = state_->wait_until(timeout, [&] { return request.done(); });
  return done ? request.status() : Status::kTimedOut;
}

Status Context::wait(MultiReceive& receive, std::chrono::nanoseconds timeout) {
  const bool news =
      state_->wait_until(timeout, [&] { return receive.has_message() || receive.done(); });
  return news ? receive.status() : Status::kTimedOut;
}

// Waits for one send after the other. Each wait() takes the lock, under which Request::on_done is
// called, so that has returned for all of them when this does.
Status Context::wait(MultiRequest& request, std::chrono::nanoseconds timeout) {
  const Instant begin = read_clock();
  const Instant end = timeout < kNever - begin ? begin + timeout : kNever;
  for (std::size_t i = 0; i < request.peers(); ++i) {
    Request& one = MultiRequest::State::of(request).request(i);
    wait(one, end == kNever ? std::chrono::nanoseconds::max() : end - read_clock());
    if (!one.done()) return Status::kTimedOut;
  }
  return request.status();
}

bool Context::prepare_wait() {
  Gate::Hold held(state_->gate);
  if (state_->thread) return false;
  const bool idle = state_->make_turn() >= 0;
  state_->callbacks.call_due(held);
  return idle;
}

int Context::wait_fd() const {
  Gate::Hold held(state_->gate);
  return state_->thread ? -1 : state_->sleeper.descriptor();
}

void Context::disconnect(PeerId peer) {
  Gate::Hold held(state_->gate);
  state_->engine.disconnect(state_->look(), peer);
}
void Context::abandon(PeerId peer) {
  Gate::Hold held(state_->gate);
  state_->engine.abandon(peer);
}

std::string Context::explain_rails(PeerId peer) const {
  Gate::Hold held(state_->gate);
  return state_->engine.explain_rails(peer);
}
std::vector<RailView> Context::rails(PeerId peer) const {
  Gate::Hold held(state_->gate);
  auto views = state_->engine.inspector().rails(read_clock(), peer);
  if (state_->relay == nullptr) return views;
  for (RailView& view : views) {
    std::string why;
    const auto remote = nic::parse(view.remote, 0, why);
    if (remote && nic::is_relayed(*remote)) view.via = state_->relay->next_hop(*remote);
  }
  return views;
}
std::optional<RailEvent> Context::take_rail_event(PeerId peer) {
  Gate::Hold held(state_->gate);
  return state_->engine.take_rail_event(peer);
}
Status Context::begin_check(PeerId peer, std::chrono::nanoseconds limit) {
  Gate::Hold held(state_->gate);
  return state_->engine.begin_check(state_->look(), peer, limit);
}
std::optional<std::vector<RailCheck>> Context::check_result(PeerId peer) const {
  Gate::Hold held(state_->gate);
  return state_->engine.check_result(peer);
}

std::vector<RailCheck> Context::check_rails(PeerId peer, std::chrono::nanoseconds limit) {
  Gate::Hold held(state_->gate);
  engine::Engine& engine = state_->engine;
  if (engine.begin_check(state_->look(), peer, limit) != Status::kOk) return {};
  State::Waiting here(state_->thread);
  WaitPolicy::Silence silence{.since = state_->looked_at};
  for (;;) {
    const std::size_t received = state_->progress(state_->look());
    here.call_due(state_->callbacks, held);
    if (auto rows = engine.check_result(peer)) return *rows;
    if (engine.inspector().peer_state(peer) == PeerState::kUnknown) return {};
    state_->rest(received, kNever, silence, held);
  }
}

Status Context::drain_rail(std::string_view nic) {
  Gate::Hold held(state_->gate);
  return state_->engine.drain_rail(state_->look(), nic);
}
Status Context::restore_rail(std::string_view nic) {
  Gate::Hold held(state_->gate);
  return state_->engine.restore_rail(state_->look(), nic);
}

Status Context::close(std::chrono::nanoseconds timeout) {
  if (is_inherited()) return Status::kClosed;
  if (state_->thread) {
    {
      Gate::Hold held(state_->gate);
      state_->closing = true;
    }
    state_->thread->stop();
  }
  Gate::Hold held(state_->gate);
  const Status status = state_->close(timeout, held);
  state_->callbacks.call_due(held);
  return status;
}

Status Context::State::close(std::chrono::nanoseconds timeout, Gate::Hold& held) {
  if (closed) return *closed;
  const Instant begin = look();
  const Instant end = timeout < kNever - begin ? begin + timeout : kNever;
  WaitPolicy::Silence silence{.since = begin};
  if (relay != nullptr) engine.neighbours().disconnect_relayed(begin);
  bool begun = false;  // the relay sends nothing once the engine closes
  for (Instant now = begin; now <= end; now = look()) {
    if (!begun && (relay == nullptr || !engine.neighbours().any_relayed())) {
      engine.begin_close(now);
      begun = true;
    }
    const std::size_t received = progress(now);
    callbacks.call_due(held);
    if (closed) return *closed;  // by a callback
    if (begun && engine.drained()) break;
    rest(received, end, silence, held);
    if (closed) return *closed;  // by another thread with a shorter timeout
  }
  if (log().should_log(spdlog::level::debug)) {
    log().debug("closes: {}", engine.inspector().dump());
  }
  if (engine.drained()) {
    closed = Status::kOk;
    engine.abort();
  } else {
    closed = Status::kTimedOut;
    engine.close_abortively(look());
  }
  publisher.end();
  if (tracer) tracer->end(looked_at, engine.failures());
  return *closed;
}

Status Context::close() {
  return close(state_->config.close_timeout);
}

Stats Context::stats() const {
  Gate::Hold held(state_->gate);
  return state_->engine.inspector().stats();
}
std::string Context::dump() const {
  Gate::Hold held(state_->gate);
  return state_->engine.inspector().dump();
}

}  // namespace pullman
