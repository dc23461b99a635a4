#include "sim/remote_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "sim/draw.h"

namespace pullman::sim {
namespace {

std::uint64_t word_at(std::span<const std::byte> bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes.data(), sizeof word);
  return word;
}

}  // namespace

void RemoteWork::booted() {
  home_ = shared_.homes.all.emplace_back(std::make_unique<Home>()).get();
  shared_.homes.now[node_.host()] = home_;
  engine::Engine& engine = node_.engine();
  engine.remote_memory().add_region(Home::kWords, home_->words, Access::kReadWrite);
  engine.remote_memory().add_region(Home::kAreas, home_->areas, Access::kReadWrite);
  engine.remote_memory().add_region(Home::kFlicker, home_->flicker, Access::kReadWrite);
}

void RemoteWork::ended() {
  run();
  if (!deeds_.empty()) {
    shared_.findings.report(fmt::format("host {}: {} one-sided operations are not done after abort",
                                        node_.host(), deeds_.size()));
  }
  tracks_.clear();
}

void RemoteWork::run() {
  if (node_.alive()) take_events();
  std::size_t kept = 0;
  for (std::size_t i = 0; i < deeds_.size(); ++i) {
    if (deeds_[i]->request.done()) {
      finished(*deeds_[i]);
    } else {
      if (kept != i) deeds_[kept] = std::move(deeds_[i]);
      ++kept;
    }
  }
  deeds_.resize(kept);
}

void RemoteWork::take_events() {
  while (const auto event = node_.engine().remote_memory().take_event()) {
    if (!shared_.homes.told.contains(event->immediate)) {
      shared_.findings.report(fmt::format("host {}: an event that nobody sent", node_.host()));
    }
    // A process that died may have taken the first event.
    if (!shared_.homes.heard.insert(event->immediate).second &&
        !shared_.excuses.any(node_.host(), {})) {
      shared_.findings.report(fmt::format("host {}: one put gave two events", node_.host()));
    }
  }
}

void RemoteWork::operate(const std::optional<Target>& target) {
  constexpr std::size_t kMaxDeeds = 24;
  if (percent(random_, 8)) return toggle();
  if (!target || target->conversation >= Home::kSlots || deeds_.size() >= kMaxDeeds) return;
  switch (random_.below(8)) {
    case 0:
    case 1:
    case 2:
      return add(*target);
    case 3:
    case 4:
      return put(*target);
    case 5:
      return get(*target);
    case 6:
      return try_what_is_forbidden(*target);
    default:
      return put_where_it_flickers(*target);
  }
}

RemoteWork::Deed& RemoteWork::begin(Deed::Kind kind, const Target& target, std::size_t bytes) {
  Deed& deed = *deeds_.emplace_back(std::make_unique<Deed>());
  deed.kind = kind;
  deed.target = target;
  deed.bytes.resize(bytes);
  return deed;
}

// Each add is one, so the conversation's word tells how many were done.
void RemoteWork::add(const Target& target) {
  const bool fetches = percent(random_, 60);
  Deed& deed = begin(Deed::Kind::kAdd, target, fetches ? sizeof(std::uint64_t) : 0);
  deed.before = track_of(target).added++;
  const std::uint64_t one = 1;
  Atomic atomic;
  atomic.operand = std::as_bytes(std::span(&one, 1));
  atomic.result = deed.bytes;
  node_.engine().remote_memory().atomic(node_.local_now(), target.peer,
                                        {Home::kWords, target.conversation * sizeof one}, atomic,
                                        deed.request);
}

void RemoteWork::put(const Target& target) {
  Track& track = track_of(target);
  if (track.writing || track.reading != 0 || track.broken) return;
  const std::size_t size = percent(random_, 10) ? 0 : log_between(random_, 1, Home::kAreaBytes);
  Deed& deed = begin(Deed::Kind::kPut, target, size);
  deed.offset = random_.below(Home::kAreaBytes - size + 1);
  fill(deed.bytes, {target.conversation, static_cast<std::uint32_t>(++track.puts)});
  track.writing = true;
  PutOptions options;
  if (percent(random_, 30)) {
    options.immediate = std::uint64_t{target.conversation} << 32 | track.puts;
    shared_.homes.told.insert(*options.immediate);
  }
  const std::size_t cut = random_.below(size + 1);
  const std::span<const std::byte> bytes = deed.bytes;
  const std::span<const std::byte> segments[] = {bytes.first(cut), bytes.subspan(cut)};
  node_.engine().remote_memory().put(
      node_.local_now(), target.peer,
      {Home::kAreas, target.conversation * Home::kAreaBytes + deed.offset}, segments, options,
      deed.request);
}

void RemoteWork::get(const Target& target) {
  Track& track = track_of(target);
  if (track.writing || track.broken) return;
  const std::size_t size = percent(random_, 10) ? 0 : log_between(random_, 1, Home::kAreaBytes);
  Deed& deed = begin(Deed::Kind::kGet, target, size);
  deed.offset = random_.below(Home::kAreaBytes - size + 1);
  ++track.reading;
  const std::size_t cut = random_.below(size + 1);
  const std::span<std::byte> bytes = deed.bytes;
  const std::span<std::byte> segments[] = {bytes.first(cut), bytes.subspan(cut)};
  node_.engine().remote_memory().get(
      node_.local_now(), target.peer,
      {Home::kAreas, target.conversation * Home::kAreaBytes + deed.offset}, segments, deed.request);
}

void RemoteWork::try_what_is_forbidden(const Target& target) {
  constexpr std::uint64_t kEnd = Home::kSlots * Home::kAreaBytes;
  Deed& deed = begin(Deed::Kind::kBad, target, log_between(random_, 8, 100'000));
  const std::uint64_t size = deed.bytes.size();
  const RemotePlace places[] = {{Home::kInvalidDestination, 0},
                                {Home::kAreas, kEnd - random_.below(size)},
                                {Home::kAreas, kEnd + 1},
                                {Home::kAreas, ~std::uint64_t{0} - random_.below(2 * size)}};
  const RemotePlace place = places[random_.below(std::size(places))];
  if (percent(random_, 50)) {
    const std::span<const std::byte> whole[] = {deed.bytes};
    node_.engine().remote_memory().put(node_.local_now(), target.peer, place, whole, {},
                                       deed.request);
  } else {
    const std::span<std::byte> whole[] = {deed.bytes};
    node_.engine().remote_memory().get(node_.local_now(), target.peer, place, whole, deed.request);
  }
}

void RemoteWork::put_where_it_flickers(const Target& target) {
  Deed& deed = begin(Deed::Kind::kFlicker, target, log_between(random_, 1, Home::kFlickerBytes));
  for (std::byte& byte : deed.bytes) byte = static_cast<std::byte>(random_.next());
  const std::span<const std::byte> whole[] = {deed.bytes};
  node_.engine().remote_memory().put(
      node_.local_now(), target.peer,
      {Home::kFlicker, random_.below(Home::kFlickerBytes - deed.bytes.size() + 1)}, whole, {},
      deed.request);
}

void RemoteWork::toggle() {
  Home& home = *home_;
  if (home.flickers_on) {
    node_.engine().remote_memory().remove_region(Home::kFlicker);
    home.when_off = home.flicker;
  } else {
    if (home.when_off != home.flicker) {
      shared_.findings.report(
          fmt::format("host {}: a region was written after it was withdrawn", node_.host()));
    }
    node_.engine().remote_memory().add_region(Home::kFlicker, home.flicker, Access::kReadWrite);
  }
  home.flickers_on = !home.flickers_on;
}

void RemoteWork::report(const char* what, const Deed& deed) {
  shared_.findings.report(
      fmt::format("host {}: {}: {} bytes at {}, conversation {} with host {}: {}", node_.host(),
                  what, deed.bytes.size(), deed.offset, deed.target.conversation, deed.target.host,
                  name(deed.request.status())));
}

void RemoteWork::finished(Deed& deed) {
  Track& track = track_of(deed.target);
  const Status status = deed.request.status();
  const bool may_be_refused = deed.kind == Deed::Kind::kBad || deed.kind == Deed::Kind::kFlicker;
  if (status == Status::kRefusedAccess) {
    if (!may_be_refused) report("what is granted was refused", deed);
  } else if (status == Status::kOk) {
    if (deed.kind == Deed::Kind::kBad) report("what is not granted was done", deed);
  } else if (status != Status::kClosed) {
    const bool met = shared_.ledger.have_met(node_.process(), deed.target.peer);
    if (!shared_.excuses.allows(node_.host(), deed.target.host, status, met)) {
      report("it failed and nothing was done to its peer", deed);
    }
  }
  if (deed.kind == Deed::Kind::kPut) finished_put(deed, track);
  if (deed.kind == Deed::Kind::kGet) finished_get(deed, track);
  if (deed.kind == Deed::Kind::kAdd && status == Status::kOk) finished_add(deed);
}

// Returns the peer's memory if it is certain which process the conversation is with.
Home* RemoteWork::home_of(const Target& target) const {
  if (shared_.excuses.any(node_.host(), target.host)) return nullptr;
  return shared_.homes.now[target.host];
}

void RemoteWork::finished_put(const Deed& deed, Track& track) {
  track.writing = false;
  if (deed.request.status() != Status::kOk) {
    track.broken = true;
    return;
  }
  std::copy(deed.bytes.begin(), deed.bytes.end(),
            track.area.begin() + static_cast<long>(deed.offset));
  const Home* home = home_of(deed.target);
  if (home == nullptr) return;
  const auto there =
      home->areas.subspan(deed.target.conversation * Home::kAreaBytes, Home::kAreaBytes);
  if (!std::equal(there.begin(), there.end(), track.area.begin())) {
    report("a put did not land exactly", deed);
  }
}

void RemoteWork::finished_get(const Deed& deed, Track& track) {
  --track.reading;
  if (deed.request.status() != Status::kOk) return;
  if (!std::equal(deed.bytes.begin(), deed.bytes.end(),
                  track.area.begin() + static_cast<long>(deed.offset))) {
    report("a get brought what was never put there", deed);
  }
}

void RemoteWork::finished_add(const Deed& deed) {
  if (!deed.bytes.empty() && word_at(deed.bytes) != deed.before) {
    report(fmt::format("an add found {}, after {} of its kind", word_at(deed.bytes), deed.before)
               .c_str(),
           deed);
  }
  const Home* home = home_of(deed.target);
  if (home == nullptr) return;
  const std::uint64_t there =
      word_at(std::span(home->words).subspan(deed.target.conversation * sizeof(std::uint64_t)));
  if (there <= deed.before || there > track_of(deed.target).added) {
    report("adds were not done once each", deed);
  }
}

}  // namespace pullman::sim
