#include "world/launcher_cards.h"

#include <fmt/format.h>

#include <atomic>

#include "pullman/status.h"
#include "world/names.h"

namespace pullman::world {
namespace {

// A launcher takes a name once, and a process may make several worlds.
std::string next_name() {
  static std::atomic<unsigned> worlds = 0;
  return fmt::format("pullman.card.{}", worlds++);
}

}  // namespace

LauncherCards::LauncherCards(launch::Launcher& launcher, Context& context,
                             std::chrono::seconds patience)
    : launcher_(launcher), context_(context), patience_(patience), name_(next_name()) {}

void LauncherCards::put(std::span<const std::byte> card) {
  if (launcher_.put(name_, card) && launcher_.share(patience_)) return;
  throw Error(
      Status::kTimedOut,
      fmt::format("{}: it takes no address, or not all {} processes tell theirs within {} s",
                  launcher_.name(), launcher_.size(), patience_.count()));
}

Addresses LauncherCards::get(unsigned rank) {
  constexpr std::chrono::seconds kSlice(1);
  const auto end = std::chrono::steady_clock::now() + patience_;
  const std::chrono::seconds limit = launcher_.may_ask_again() ? kSlice : patience_;
  Bytes value(launch::Launcher::kMaxValueBytes);
  do {
    if (const auto length = launcher_.get(launch::Launcher::Job::kOwn, rank, name_, limit, value)) {
      std::span<const std::byte> card(value.data(), *length);
      return take_card(card);
    }
    context_.progress();
  } while (launcher_.may_ask_again() && std::chrono::steady_clock::now() < end);
  throw Error(
      Status::kTimedOut,
      fmt::format("{}: {} has told no address within {} s: has it started, and made a World?",
                  launcher_.name(), name_of(rank), patience_.count()));
}

}  // namespace pullman::world
