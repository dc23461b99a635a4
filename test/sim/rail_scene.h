// Parts of scenarios of rails: hosts of several NICs, and a stream of messages that measures the
// longest pause between arrivals.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "sim/scene.h"
#include "sim/sim_port.h"

namespace pullman::sim {

// A wire of 1 Gb/s.
inline constexpr std::uint64_t kGigabit = 8192;  // ns per KiB

// Hosts with that many NICs each; NICs of one number are on one link. `tweak` changes what all NICs
// of a host have in common, `tweak_more` a host with all of its NICs.
class RailScene : public Scene {
 public:
  explicit RailScene(std::vector<std::size_t> nics, const Tweak& tweak = {},
                     const Tweak& tweak_more = {})
      : Scene(nics.size(), [&, host = std::size_t{0}](NodePlan& plan) mutable {
          if (tweak) tweak(plan);
          plan.more.resize(nics[host++] - 1, {.command = plan.command, .data = plan.data});
          if (tweak_more) tweak_more(plan);
        }) {}

  std::vector<RailView> rails(std::size_t host, PeerId peer) {
    return engine(host).inspector().rails(node(host).local_now(), peer);
  }
  RailView rail(std::size_t host, PeerId peer, std::size_t number) {
    return rails(host, peer).at(number);
  }
  // Returns the bytes that each rail has sent since its view was taken.
  std::vector<double> bytes_sent_since(const std::vector<RailView>& before, std::size_t host,
                                       PeerId peer) {
    const auto after = rails(host, peer);
    std::vector<double> bytes;
    for (std::size_t i = 0; i < before.size(); ++i) {
      bytes.push_back(static_cast<double>(after[i].bytes_sent - before[i].bytes_sent));
    }
    return bytes;
  }
  bool all_up(std::size_t host, PeerId peer) {
    const auto views = rails(host, peer);
    return std::all_of(views.begin(), views.end(),
                       [](const RailView& view) { return view.state == RailState::kUp; });
  }
  bool all_up(Couple couple) { return all_up(0, couple.there) && all_up(1, couple.back); }
  // Connects hosts 0 and 1 and waits until both have `count` rails, all up.
  Couple couple_by_rails(std::size_t count) {
    const Couple met = couple(0, 1);
    run_until([&] {
      return rails(0, met.there).size() == count && rails(1, met.back).size() == count &&
             all_up(met);
    });
    return met;
  }

  // Changes the wires between NICs of that number, both ways.
  template <typename Change>
  void change_wires(std::uint8_t nic, Change change) {
    change(network().wire(Plug{0, nic}, Plug{1, nic}));
    change(network().wire(Plug{1, nic}, Plug{0, nic}));
  }
  // Cuts the wire from now on.
  void cut(std::uint8_t nic, std::size_t from, std::size_t to, Duration time = kForever,
           bool holds = false) {
    network().partitions().push_back({.from = static_cast<std::uint8_t>(from),
                                      .to = static_cast<std::uint8_t>(to),
                                      .start = now(),
                                      .end = now() + time,
                                      .from_nic = nic,
                                      .to_nic = nic,
                                      .holds = holds});
  }
  void cut_both_ways(std::uint8_t nic, Duration time = kForever, bool holds = false) {
    cut(nic, 0, 1, time, holds);
    cut(nic, 1, 0, time, holds);
  }
  void mend() { network().partitions().clear(); }
  void trouble(std::uint8_t host, std::uint8_t nic, NicTrouble::Kind kind,
               Duration time = kForever) {
    network().trouble({.at = {host, nic}, .start = now(), .end = now() + time, .kind = kind});
  }
};

// Sends messages from host 0 to host 1 as fast as they go, `depth` at a time.
class Stream {
 public:
  Stream(RailScene& scene, Scene::Couple couple, std::size_t size, std::size_t depth)
      : scene_(scene), couple_(couple), size_(size), last_(scene.now()) {
    for (std::size_t i = 0; i < depth; ++i) begin();
  }

  void run_for(Duration time) {
    const Instant end = scene_.now() + time;
    scene_.run_until([&] {
      pump();
      return scene_.now() >= end;
    });
  }
  // Sends no more; returns whether all that were sent arrived intact.
  bool finish() {
    ends_ = true;
    scene_.run_until([&] {
      pump();
      return sends_.empty() && receives_.empty();
    });
    return sends_.empty() && receives_.empty() && good_;
  }

  std::size_t arrived() const { return arrived_; }
  std::size_t acked() const { return acked_; }
  // Returns the longest pause between two arrivals since the last call.
  Duration longest_gap() {
    note_gap();
    return std::exchange(longest_gap_, Duration(0));
  }

 private:
  void begin() {
    const Tag tag = next_++;
    receives_.push_back(&scene_.receive(1, couple_.back, tag, size_));
    sends_.push_back(&scene_.send(0, couple_.there, tag, size_));
  }
  // The scene keeps each act, and a stream has a hundred thousand: frees the bytes.
  static void give_back(Act& act) { std::vector<std::byte>().swap(act.bytes); }
  void note_gap() { longest_gap_ = std::max(longest_gap_, scene_.now() - last_); }

  void pump() {
    acked_ += std::erase_if(sends_, [&](Act* act) {
      if (!act->done()) return false;
      good_ = good_ && act->status() == Status::kOk;
      give_back(*act);
      return true;
    });
    const std::size_t gone = std::erase_if(receives_, [&](Act* act) {
      if (!act->done()) return false;
      good_ =
          good_ && act->status() == Status::kOk && Scene::holds(*act, act->request.tag(), size_);
      give_back(*act);
      return true;
    });
    if (gone == 0) return;
    arrived_ += gone;
    note_gap();
    last_ = scene_.now();
    for (std::size_t i = 0; i < gone && !ends_; ++i) begin();
  }

  RailScene& scene_;
  const Scene::Couple couple_;
  const std::size_t size_;
  Tag next_ = 1;
  std::vector<Act*> sends_;
  std::vector<Act*> receives_;
  std::size_t arrived_ = 0;
  std::size_t acked_ = 0;
  bool good_ = true;
  bool ends_ = false;
  Instant last_;
  Duration longest_gap_{0};
};

}  // namespace pullman::sim
