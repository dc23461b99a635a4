// The implementation of the API: opens the context, has the processes find each other in one of
// four ways, and connects them when they are needed.
#include "pullman/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/log.h"
#include "crypto/random.h"
#include "crypto/secret.h"
#include "launch/launcher.h"
#include "pullman/status.h"
#include "wire/bytes.h"
#include "world/card.h"
#include "world/collectives.h"
#include "world/mail.h"
#include "world/names.h"
#include "world/place.h"
#include "world/rendezvous.h"

namespace pullman {
namespace {

using world::Addresses;
using world::Bytes;
using world::name_of;
using world::Place;

// Room in the directory beside the world's own processes.
constexpr std::size_t kOtherPeers = 16;
constexpr std::size_t kKeyBytes = sizeof(Config::Key);
constexpr std::size_t kIdCardBytes = sizeof(World::Id) - kKeyBytes;
// Every process of a job that an allgather function serves passes so many bytes.
constexpr std::size_t kGatheredBytes = 200;
static_assert(kGatheredBytes <= launch::Launcher::kMaxValueBytes);

[[noreturn]] void refuse(Status status, const std::string& sentence) {
  throw Error(status, sentence);
}

bool needs_key(const Config& config) {
  return config.security != Config::Security::kOff && config.keys.empty() &&
         config.key_file.empty() && config.pass_phrase.empty();
}

Config::Key draw_key() {
  Config::Key key{};
  if (!crypto::fill_randomly(key)) refuse(Status::kBadOption, "the kernel gives no random bytes");
  return key;
}

bool is_nothing(const Config::Key& key) {
  return std::all_of(key.begin(), key.end(), [](std::byte byte) { return byte == std::byte{0}; });
}

std::vector<std::string> texts_of(const Addresses& addresses) {
  std::vector<std::string> texts;
  for (const nic::Address& address : addresses) texts.push_back(nic::to_string(address));
  return texts;
}

Addresses addresses_of(const Context& context) {
  Addresses addresses;
  std::string why;
  for (const std::string& text : context.addresses()) {
    if (const auto address = nic::parse(text, 0, why)) addresses.push_back(*address);
  }
  return addresses;
}

std::chrono::seconds in_seconds(std::chrono::nanoseconds time) {
  return std::chrono::ceil<std::chrono::seconds>(time);
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
  State(Place at, const Options& options, Config config, std::string how)
      : place(at),
        source(std::move(how)),
        context(with_room(std::move(config), at)),
        mail(context, options.patience),
        collectives(mail, at.rank, at.size, [this](unsigned rank) { return peer(rank); }) {}

  static Config with_room(Config config, Place place) {
    world::check(place);
    config.max_peers = std::max(config.max_peers, place.size + kOtherPeers);
    return config;
  }

  Bytes card(std::size_t limit) const { return world::card_of(addresses_of(context), limit); }

  // Takes what the processes have found out about each other.
  void take(world::Met met) {
    for (Addresses& addresses : met.cards) cards.push_back(std::move(addresses));
    for (unsigned rank = 0; rank < met.peers.size(); ++rank) {
      if (met.peers[rank] != PeerId{}) remember(rank, met.peers[rank]);
    }
  }
  // Has the others come, if this process has created the world and not met them yet.
  void meet() {
    if (!meets_later) return;
    take(world::meet_as_first(mail, place, card(kGatheredBytes)));
    meets_later = false;
  }

  PeerId peer(unsigned rank) {
    if (rank >= place.size) {
      refuse(Status::kInvalidArgument,
             fmt::format("there is no {}: {} processes", name_of(rank), place.size));
    }
    meet();
    note_introductions();
    if (const auto known = peers.find(rank); known != peers.end()) return known->second;
    const PeerId there = context.connect(texts_of(addresses(rank)));
    remember(rank, there);
    if (rank == place.rank) return there;
    Bytes letter(sizeof(std::uint32_t));
    wire::store32(letter.data(), place.rank);
    mail.send(there, world::Kind::kIntroduction, 0, std::move(letter), name_of(rank));
    return there;
  }

  std::optional<unsigned> rank_of(PeerId peer) {
    meet();
    note_introductions();
    for (const auto& [rank, its] : peers) {
      if (its == peer) return rank;
    }
    return std::nullopt;
  }

  void remember(unsigned rank, PeerId peer) { peers.insert_or_assign(rank, peer); }

  // Those that have connected to this process have said who they are.
  void note_introductions() {
    while (const auto letter = mail.next(world::Kind::kIntroduction)) {
      if (letter->bytes.size() != sizeof(std::uint32_t)) continue;
      const unsigned rank = wire::load32(letter->bytes.data());
      if (rank < place.size) remember(rank, letter->from);
    }
  }

  Addresses addresses(unsigned rank) {
    if (launcher == nullptr) return cards.at(rank);
    Bytes value(launch::Launcher::kMaxValueBytes);
    const auto length = launcher->get(launch::Launcher::Job::kOwn, rank, card_name,
                                      in_seconds(mail.patience()), value);
    if (!length) {
      refuse(
          Status::kTimedOut,
          fmt::format("{}: {} has told no address within {} s: has it started, and made a World?",
                      launcher->name(), name_of(rank), in_seconds(mail.patience()).count()));
    }
    std::span<const std::byte> told(value.data(), *length);
    return world::take_card(told);
  }

  const Place place;
  const std::string source;
  Context context;
  world::Mail mail;
  world::Collectives collectives;
  std::unordered_map<unsigned, PeerId> peers;  // by rank
  std::vector<Addresses> cards;                // of all, by rank, unless a launcher has them
  launch::Launcher* launcher = nullptr;
  std::string card_name;     // under which the launcher has them
  Config::Key key{};         // of the id
  bool is_created = false;   // here
  bool meets_later = false;  // the others, which join
};

World::World(std::unique_ptr<State> state) : state_(std::move(state)) {}
World::World(World&&) noexcept = default;
World::~World() = default;

World World::from_environment(const Options& options) {
  if (const char* const rendezvous = std::getenv("PULLMAN_RENDEZVOUS")) {
    const nic::Address first = parse_rendezvous(rendezvous);
    const auto place = world::place_in_environment();
    if (!place) {
      refuse(Status::kBadOption,
             "PULLMAN_RENDEZVOUS needs PULLMAN_RANK, counted from 0, and PULLMAN_SIZE");
    }
    Config config = options.config;
    if (place->rank == 0) config.port = nic::port_of(first);
    auto state = std::make_unique<State>(*place, options, std::move(config),
                                         fmt::format("rank 0 at {}", nic::to_string(first)));
    Context& context = state->context;
    const Bytes card = state->card(kGatheredBytes);
    if (place->rank == 0) {
      const Addresses own = addresses_of(context);
      if (std::none_of(own.begin(), own.end(),
                       [&](const auto& one) { return nic::same_port(one, first); })) {
        refuse(Status::kBadOption,
               fmt::format("PULLMAN_RENDEZVOUS={} is no address of rank 0, which has {}",
                           rendezvous, fmt::join(context.addresses(), " and ")));
      }
      state->take(world::meet_as_first(state->mail, *place, card));
    } else {
      state->take(world::meet_at_first(
          state->mail, *place, card, [&] { return context.connect(nic::to_string(first)); },
          [&](PeerId peer) { context.abandon(peer); }));
    }
    return World(std::move(state));
  }
  const launch::Found found = launch::find_launcher();
  if (found.launcher == nullptr) {
    refuse(Status::kBadOption,
           fmt::format("nothing says which processes are one job{}: neither PULLMAN_RENDEZVOUS="
                       "HOST:PORT of rank 0 is set, nor has a launcher set PMIX_NAMESPACE (mpirun, "
                       "srun --mpi=pmix) or PMI_FD (srun --mpi=pmi2, mpiexec, flux)",
                       found.problem.empty() ? "" : " (" + found.problem + ")"));
  }
  launch::Launcher& launcher = *found.launcher;
  auto state = std::make_unique<State>(Place{launcher.rank(), launcher.size()}, options,
                                       options.config, launcher.name());
  // A launcher takes a name once, and a process may make several worlds.
  static std::atomic<unsigned> worlds = 0;
  state->card_name = fmt::format("pullman.card.{}", worlds++);
  state->launcher = &launcher;
  if (!launcher.put(state->card_name, state->card(kGatheredBytes)) ||
      !launcher.share(in_seconds(options.patience))) {
    refuse(Status::kTimedOut,
           fmt::format("{}: it takes no address, or not all {} processes tell theirs within {} s",
                       launcher.name(), launcher.size(), in_seconds(options.patience).count()));
  }
  return World(std::move(state));
}

World World::create(unsigned size, const Options& options) {
  Config config = options.config;
  Config::Key key{};
  if (needs_key(config)) {
    key = draw_key();
    config.keys = {key};
  }
  auto state = std::make_unique<State>(Place{0, size}, options, std::move(config),
                                       "the id that others join");
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
  std::copy(state_->key.begin(), state_->key.end(), id.begin());
  std::copy(card.begin(), card.end(), id.begin() + kKeyBytes);
  return id;
}

World World::join(const Id& id, unsigned rank, unsigned size, const Options& options) {
  const Place place{rank, size};
  if (rank == 0) refuse(Status::kInvalidArgument, "rank 0 creates the world, the others join it");
  Config config = options.config;
  Config::Key key{};
  std::copy_n(id.begin(), kKeyBytes, key.begin());
  if (needs_key(config) && !is_nothing(key)) config.keys = {key};
  crypto::wipe(key);
  std::span<const std::byte> card = std::span(id).subspan(kKeyBytes);
  const std::vector<std::string> first = texts_of(world::take_card(card));
  auto state = std::make_unique<State>(place, options, std::move(config), "the id of rank 0");
  Context& context = state->context;
  state->take(world::meet_at_first(
      state->mail, place, state->card(kGatheredBytes), [&] { return context.connect(first); },
      [&](PeerId peer) { context.abandon(peer); }));
  return World(std::move(state));
}

World World::from_allgather(unsigned rank, unsigned size, const Allgather& allgather,
                            const Options& options) {
  const Place place{rank, size};
  world::check(place);
  Config config = options.config;
  Config::Key key{};
  if (rank == 0 && needs_key(config)) key = draw_key();
  std::vector<std::byte> keys(size * kKeyBytes);
  allgather(key, keys);
  std::copy_n(keys.begin(), kKeyBytes, key.begin());
  crypto::wipe(keys);
  if (needs_key(config) && !is_nothing(key)) config.keys = {key};
  crypto::wipe(key);
  auto state = std::make_unique<State>(place, options, std::move(config), "the program");
  Bytes mine = state->card(kGatheredBytes);
  mine.resize(kGatheredBytes);
  Bytes all(size * kGatheredBytes);
  allgather(mine, all);
  for (std::size_t at = 0; at < all.size(); at += kGatheredBytes) {
    std::span<const std::byte> card(all.data() + at, kGatheredBytes);
    state->cards.push_back(world::take_card(card));
  }
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
  return state_->peer(rank);
}
std::optional<unsigned> World::rank_of(PeerId peer) {
  return state_->rank_of(peer);
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
  state_->meet();
  return state_->collectives.broadcast(root, std::move(message));
}

}  // namespace pullman
