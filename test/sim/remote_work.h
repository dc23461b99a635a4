// What one host's program does to regions of others, and the invariants: puts land exactly, refused
// ones write nothing, gets read what was put, atomics are done once and in order, and a withdrawn
// region is not written.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/random.h"
#include "sim/allowed_failures.h"
#include "sim/ledger.h"
#include "sim/node.h"

namespace pullman::sim {

// One process's regions. Every conversation of a peer with it has its own word and area.
struct Home {
  static constexpr std::uint32_t kSlots = 64;
  static constexpr std::size_t kAreaBytes = 24 * 1024;
  static constexpr std::size_t kFlickerBytes = 16 * 1024;
  static constexpr std::uint64_t kWords = 1;
  static constexpr std::uint64_t kAreas = 2;
  static constexpr std::uint64_t kFlicker = 3;             // added and withdrawn
  static constexpr std::uint64_t kInvalidDestination = 4;  // no region has this key

  std::vector<std::byte> words = std::vector<std::byte>(kSlots * sizeof(std::uint64_t));
  // Zeros from calloc(), which cost nothing until touched: most slots never are.
  std::unique_ptr<std::byte, void (*)(void*)> area_bytes{
      static_cast<std::byte*>(std::calloc(kSlots, kAreaBytes)), std::free};
  std::span<std::byte> areas{area_bytes.get(), kSlots* kAreaBytes};
  std::vector<std::byte> flicker = std::vector<std::byte>(kFlickerBytes);
  bool flickers_on = true;
  std::vector<std::byte> when_off;  // contents of the flickering region when it was withdrawn
};

// What the programs of a run know of each other's regions.
struct Homes {
  std::array<Home*, kMaxHosts> now{};
  std::vector<std::unique_ptr<Home>> all;
  std::set<std::uint64_t> told;   // immediate data of puts
  std::set<std::uint64_t> heard;  // immediate data that arrived
};

class RemoteWork {
 public:
  struct Shared {
    Ledger& ledger;
    AllowedFailures& excuses;
    Findings& findings;  // findings that an attacker on the path explains are ignored
    Homes& homes;
  };
  // The peer that is worked on.
  struct Target {
    PeerId peer;
    std::uint8_t host = 0;
    std::uint32_t conversation = 0;
  };

  RemoteWork(const Shared& shared, Node& node, std::uint64_t seed)
      : shared_(shared), node_(node), random_(seed) {}

  // A process begins: its regions exist before a peer can ask for them.
  void booted();
  // The process has ended: every request has to be done.
  void ended();
  // Takes finished requests, and events that peers left here.
  void run();
  // Does an operation on a target, or on its own regions.
  void operate(const std::optional<Target>& target);

  std::size_t pending() const { return deeds_.size(); }

 private:
  struct Deed {
    enum class Kind : std::uint8_t { kAdd, kPut, kGet, kBad, kFlicker };
    Request request;
    std::vector<std::byte> bytes;
    Kind kind = Kind::kAdd;
    Target target;
    std::uint64_t offset = 0;  // within the area
    std::uint64_t before = 0;  // the value that an add must fetch
  };
  // The operations of one conversation.
  struct Track {
    std::uint64_t added = 0;
    std::uint64_t puts = 0;
    std::size_t reading = 0;
    bool writing = false;
    bool broken = false;  // a put failed, so the area's contents are unknown
    std::vector<std::byte> area = std::vector<std::byte>(Home::kAreaBytes);
  };

  Deed& begin(Deed::Kind kind, const Target& target, std::size_t bytes);
  void add(const Target& target);
  void put(const Target& target);
  void get(const Target& target);
  void try_what_is_forbidden(const Target& target);
  void put_where_it_flickers(const Target& target);
  void toggle();
  void take_events();
  void finished(Deed& deed);
  void finished_put(const Deed& deed, Track& track);
  void finished_get(const Deed& deed, Track& track);
  void finished_add(const Deed& deed);
  Home* home_of(const Target& target) const;
  Track& track_of(const Target& target) { return tracks_[target.conversation]; }
  void report(const char* what, const Deed& deed);

  Shared shared_;
  Node& node_;
  Random random_;
  Home* home_ = nullptr;
  std::map<std::uint32_t, Track> tracks_;  // by conversation
  std::vector<std::unique_ptr<Deed>> deeds_;
};

}  // namespace pullman::sim
