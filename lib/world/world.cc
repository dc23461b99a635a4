// The implementation of the API: opens the context, has the processes find each other in one of
// four ways, and passes the rest to the roster and the collective calls.
#include "pullman/world.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <utility>

#include "base/log.h"
#include "context/service.h"
#include "crypto/random.h"
#include "crypto/secret.h"
#include "launch/launcher.h"
#include "nic/prefix.h"
#include "pullman/status.h"
#include "world/card.h"
#include "world/collectives.h"
#include "world/launcher_cards.h"
#include "world/mail.h"
#include "world/names.h"
#include "world/place.h"
#include "world/rendezvous.h"
#include "world/report.h"
#include "world/roster.h"
#include "world/side_channel.h"

namespace pullman {
namespace {

using launch::Launcher;
using world::Addresses;
using world::Bytes;
using world::name_of;
using world::Place;
using Key = crypto::Secret<sizeof(Config::Key)>;

constexpr std::size_t kIdCardBytes = sizeof(World::Id) - sizeof(Config::Key);
// Room for the longest card of eight addresses.
constexpr std::size_t kCardBytes = 200;
static_assert(kCardBytes <= Launcher::kMaxValueBytes);
// Peers of rank 0 that are not of the world.
constexpr std::size_t kOtherPeers = 16;
// For the others' counters, if an exception ends the world: they may know nothing of it.
constexpr std::chrono::nanoseconds kPatienceAfterError = std::chrono::seconds(5);
// The least memory for unexpected messages that a Config has for each peer.
constexpr std::size_t kUnexpectedPerPeer = 4096;

[[noreturn]] void refuse(Status status, const std::string& sentence) {
  throw Error(status, sentence);
}

bool is_nothing(const Key& key) {
  return key == Key();
}

// A Config whose keys are wiped in the end.
class KeyedConfig {
 public:
  explicit KeyedConfig(const Config& config) : config_(config) {}
  ~KeyedConfig() { crypto::wipe(std::as_writable_bytes(std::span(config_.keys))); }
  KeyedConfig(const KeyedConfig&) = delete;
  KeyedConfig& operator=(const KeyedConfig&) = delete;

  // Returns whether the program has named no key, and there can be one.
  bool needs_key() const {
    return config_.security != Config::Security::kOff && config_.seed == 0 &&
           config_.keys.empty() && config_.key_file.empty() && config_.pass_phrase.empty();
  }
  void take_key(const Key& key) {
    if (!needs_key() || is_nothing(key)) return;
    std::copy(key.bytes().begin(), key.bytes().end(), config_.keys.emplace_back().begin());
  }
  void set_port(std::uint16_t port) { config_.port = port; }
  // For the process to which all others connect.
  void make_room_for(unsigned size) {
    config_.max_peers = std::max(config_.max_peers, size + kOtherPeers);
    config_.unexpected_bytes =
        std::max(config_.unexpected_bytes, config_.max_peers * kUnexpectedPerPeer);
  }
  const Config& get() const { return config_; }

 private:
  Config config_;
};

Key draw_key() {
  Key key;
  if (!crypto::fill_randomly(key.bytes())) {
    refuse(Status::kBadOption, "the kernel gives no random bytes");
  }
  return key;
}

std::vector<std::string> texts_of(const Addresses& addresses) {
  std::vector<std::string> texts;
  for (const nic::Address& address : addresses) texts.push_back(nic::to_string(address));
  return texts;
}

// Link-local addresses only if there is nothing else: their scope means another interface
// elsewhere.
Addresses addresses_of(const Context& context) {
  Addresses addresses;
  std::string why;
  for (const std::string& text : context.addresses()) {
    if (const auto address = nic::parse(text, 0, why)) addresses.push_back(*address);
  }
  const auto is_local = [](const nic::Address& address) {
    return address.kind == 6 && nic::is_link_local(address);
  };
  if (!std::all_of(addresses.begin(), addresses.end(), is_local)) {
    std::erase_if(addresses, is_local);
  }
  return addresses;
}

nic::Address parse_rendezvous(const char* text) {
  std::string why;
  const auto address = nic::parse(text, 0, why);
  if (address && nic::port_of(*address) != 0) return *address;
  refuse(Status::kBadOption,
         fmt::format("PULLMAN_RENDEZVOUS='{}' is not the HOST:PORT of rank 0{}{}", text,
                     why.empty() ? "" : ": ", why));
}

}  // namespace

struct World::State {
  State(Place at, const Options& options, const KeyedConfig& config, std::string how)
      : place(at),
        source(std::move(how)),
        context(config.get()),
        mail(context, options.patience),
        roster(context, mail, at, [this](unsigned rank) { return texts_of(addresses(rank)); }),
        collectives(mail, roster, at),
        side_channel(context, roster, collectives.current(), at) {}

  Bytes card(std::size_t limit = kCardBytes) const {
    return world::card_of(addresses_of(context), limit);
  }
  Addresses addresses(unsigned rank) {
    return from_launcher ? from_launcher->get(rank) : cards.at(rank);
  }

  // Takes what the processes have found out about each other.
  void take(world::Met met) {
    for (Addresses& addresses : met.cards) cards.push_back(std::move(addresses));
    for (unsigned rank = 0; rank < met.peers.size(); ++rank) {
      if (met.peers[rank] != PeerId{}) roster.remember(rank, met.peers[rank]);
    }
    tell_addresses();
  }
  // The addresses of all are known without a launcher.
  void tell_addresses() {
    std::vector<std::vector<std::string>> texts;
    for (const Addresses& addresses : cards) texts.push_back(texts_of(addresses));
    side_channel.set_addresses(std::move(texts));
  }
  // The last that all do together, if they are asked to. Nothing that goes wrong is thrown.
  void report() {
    if (report_target.empty() || meets_later) return;
    try {
      Context::Service::Activity activity;
      const telemetry::Rows rows = Context::Service::rows(context, activity);
      if (activity.is_closed) {
        log().warn(
            "this process is missing in the report of the job (PULLMAN_REPORT): the context of its "
            "world was closed before the world ended");
        return;
      }
      world::report(mail, roster,
                    {.place = place,
                     .rows = rows,
                     .duration = std::chrono::steady_clock::now() - begun,
                     .patience = std::uncaught_exceptions() == 0
                                     ? mail.patience()
                                     : std::min(mail.patience(), kPatienceAfterError),
                     .target = report_target});
    } catch (const std::exception& error) {
      log().warn("there is no report of the job (PULLMAN_REPORT): {}", error.what());
    }
  }
  // Has the others come, if this process has created the world and not met them yet.
  void meet() {
    if (!meets_later) return;
    take(world::meet_as_first(mail, place, card()));
    meets_later = false;
  }
  void meet_at(const std::vector<std::string>& first) {
    take(world::meet_at_first(
        mail, place, card(), [&] { return context.connect(first); },
        [&](PeerId peer) { context.abandon(peer); }));
  }

  const Place place;
  const std::string source;
  Context context;
  world::Mail mail;
  std::vector<Addresses> cards;                       // of all, by rank, unless
  std::optional<world::LauncherCards> from_launcher;  // the launcher has them
  world::Roster roster;
  world::Collectives collectives;
  world::SideChannel side_channel;
  const std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
  const std::string report_target = world::report_target();  // before the program goes elsewhere
  Key key;                                                   // of the id
  bool is_created = false;                                   // here
  bool meets_later = false;                                  // the others, which join
};

World::World(std::unique_ptr<State> state) : state_(std::move(state)) {}
World::World(World&&) noexcept = default;
// In a child of fork() all of it is the parent's.
World::~World() {
  if (state_ == nullptr) return;
  if (state_->context.is_inherited()) {
    static_cast<void>(state_.release());
  } else {
    state_->report();
  }
}

World World::from_environment(const Options& options) {
  if (const char* const rendezvous = std::getenv("PULLMAN_RENDEZVOUS")) {
    return meet_at(rendezvous, options);
  }
  const launch::Found found = launch::find_launcher();
  if (found.launcher == nullptr) {
    refuse(Status::kBadOption,
           fmt::format("nothing says which processes are one job{}: neither PULLMAN_RENDEZVOUS="
                       "HOST:PORT of rank 0 is set, nor has a launcher set PMIX_NAMESPACE (mpirun, "
                       "srun --mpi=pmix) or PMI_FD (srun --mpi=pmi2, mpiexec, flux)",
                       found.problem.empty() ? "" : " (" + found.problem + ")"));
  }
  Launcher& launcher = *found.launcher;
  const Place place{launcher.rank(), launcher.size()};
  world::check(place);
  const KeyedConfig config(options.config);
  auto state = std::make_unique<State>(place, options, config, launcher.name());
  state->from_launcher.emplace(launcher, state->context,
                               std::chrono::ceil<std::chrono::seconds>(state->mail.patience()));
  state->from_launcher->put(state->card());
  return World(std::move(state));
}

World World::meet_at(const char* rendezvous, const Options& options) {
  const nic::Address first = parse_rendezvous(rendezvous);
  const auto place = world::place_in_environment();
  if (!place) {
    refuse(Status::kBadOption,
           "PULLMAN_RENDEZVOUS needs PULLMAN_RANK, counted from 0, and PULLMAN_SIZE");
  }
  KeyedConfig config(options.config);
  if (place->rank == 0) {
    config.set_port(nic::port_of(first));
    config.make_room_for(place->size);
  }
  auto state = std::make_unique<State>(*place, options, config,
                                       fmt::format("rank 0 at {}", nic::to_string(first)));
  if (place->rank != 0) {
    state->meet_at({nic::to_string(first)});
    return World(std::move(state));
  }
  const Addresses own = addresses_of(state->context);
  if (std::none_of(own.begin(), own.end(),
                   [&](const auto& one) { return nic::same_port(one, first); })) {
    refuse(Status::kBadOption,
           fmt::format("PULLMAN_RENDEZVOUS={} means {}, which is no address of rank 0: it has {}",
                       rendezvous, nic::to_string(first), fmt::join(texts_of(own), " and ")));
  }
  state->meets_later = true;
  state->meet();
  return World(std::move(state));
}

World World::create(unsigned size, const Options& options) {
  const Place place{0, size};
  world::check(place);
  KeyedConfig config(options.config);
  config.make_room_for(size);
  Key key;
  if (config.needs_key()) key = draw_key();
  config.take_key(key);
  auto state = std::make_unique<State>(place, options, config, "the id that others join");
  state->key = key;
  state->is_created = state->meets_later = true;
  return World(std::move(state));
}

World::Id World::id() const {
  if (!state_->is_created) {
    refuse(Status::kInvalidArgument, "this world was not created here, so it has no id");
  }
  Id id{};
  const Bytes card = state_->card(kIdCardBytes);
  const auto key = state_->key.bytes();
  std::copy(key.begin(), key.end(), id.begin());
  std::copy(card.begin(), card.end(), id.begin() + key.size());
  return id;
}

World World::join(const Id& id, unsigned rank, unsigned size, const Options& options) {
  const Place place{rank, size};
  world::check(place);
  if (rank == 0) refuse(Status::kInvalidArgument, "rank 0 creates the world, the others join it");
  KeyedConfig config(options.config);
  const auto bytes = std::span(id);
  config.take_key(Key(bytes.first<sizeof(Config::Key)>()));
  std::span<const std::byte> card = bytes.subspan(sizeof(Config::Key));
  const std::vector<std::string> first = texts_of(world::take_card(card));
  auto state = std::make_unique<State>(place, options, config, "the id of rank 0");
  state->meet_at(first);
  return World(std::move(state));
}

World World::from_allgather(unsigned rank, unsigned size, const Allgather& allgather,
                            const Options& options) {
  const Place place{rank, size};
  world::check(place);
  KeyedConfig config(options.config);
  Key key;
  if (rank == 0 && config.needs_key()) key = draw_key();
  std::vector<Key> keys(size);
  allgather(key.bytes(), std::as_writable_bytes(std::span(keys)));
  config.take_key(keys.front());
  auto state = std::make_unique<State>(place, options, config, "the program");
  Bytes mine = state->card();
  mine.resize(kCardBytes);
  Bytes all(size * kCardBytes);
  allgather(mine, all);
  for (std::size_t at = 0; at < all.size(); at += kCardBytes) {
    std::span<const std::byte> card(all.data() + at, kCardBytes);
    state->cards.push_back(world::take_card(card));
  }
  state->tell_addresses();
  return World(std::move(state));
}

Context& World::context() {
  return state_->context;
}
unsigned World::rank() const {
  return state_->place.rank;
}
unsigned World::size() const {
  return state_->place.size;
}
std::string World::source() const {
  return state_->source;
}

PeerId World::peer(unsigned rank) {
  state_->meet();
  return state_->roster.peer(rank);
}

std::optional<unsigned> World::rank_of(PeerId peer) {
  state_->meet();
  return state_->roster.rank_of(peer);
}

void World::barrier() {
  state_->meet();
  state_->collectives.barrier();
}

std::vector<std::vector<std::byte>> World::allgather(std::span<const std::byte> card) {
  if (card.size() > kMaxCardBytes) {
    refuse(Status::kInvalidArgument, fmt::format("a card has {} bytes at most", kMaxCardBytes));
  }
  state_->meet();
  return state_->collectives.allgather(card);
}

SharedBytes World::broadcast(unsigned root, SharedBytes message) {
  if (root >= size()) {
    refuse(Status::kInvalidArgument, fmt::format("there is no {} to send from", name_of(root)));
  }
  if (message != nullptr && message->size() > kMaxBroadcastBytes) {
    refuse(Status::kInvalidArgument,
           fmt::format("a broadcast has {} bytes at most", kMaxBroadcastBytes));
  }
  state_->meet();
  return state_->collectives.broadcast(root, std::move(message));
}

}  // namespace pullman
