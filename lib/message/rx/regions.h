// Regions: memory of this process that peers may read, write and operate on, by key and offset.
//
// This is the only place that turns a peer's key and offset (never a raw address) into an address,
// and it checks key, bounds and rights. Knows which puts are under way into each region, so that a
// region can be removed at any time. Also keeps the events that puts leave. One per engine.
#pragma once

#include <boost/intrusive/list.hpp>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <unordered_map>

#include "message/rx/in_message.h"
#include "pullman/operations.h"

namespace pullman::message {

struct Answer;

struct Region {
  using Arriving = boost::intrusive::list<
      Unexpected,
      boost::intrusive::member_hook<Unexpected, Unexpected::ListHook, &Unexpected::in_order>,
      boost::intrusive::constant_time_size<false>>;

  std::uint64_t key = 0;
  std::span<std::byte> bytes;
  Access access = Access::kNone;
  Arriving arriving;  // puts that are being written
  RemoteUse use;
};

class Regions {
 public:
  Regions() = default;
  Regions(const Regions&) = delete;
  Regions& operator=(const Regions&) = delete;

  // Returns false if the key is in use.
  bool add(std::uint64_t key, std::span<std::byte> bytes, Access access) {
    const auto [place, made] = regions_.try_emplace(key);
    if (!made) return false;
    place->second.key = key;
    place->second.bytes = bytes;
    place->second.access = access;
    return true;
  }

  Region* find(std::uint64_t key) {
    const auto found = regions_.find(key);
    return found == regions_.end() ? nullptr : &found->second;
  }

  // An access that a peer asks for. open() returns the bytes, or nothing if it is not allowed; an
  // allowed access may be empty.
  struct Wish {
    std::uint64_t key = 0;
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    Access needed = Access::kNone;
  };
  std::optional<std::span<std::byte>> open(const Wish& wish) {
    const Region* region = find(wish.key);
    if (region == nullptr || !allows(region->access, wish.needed)) return std::nullopt;
    const std::uint64_t size = region->bytes.size();
    if (wish.offset > size || wish.length > size - wish.offset) return std::nullopt;
    return region->bytes.subspan(wish.offset, wish.length);
  }

  // Removes a region. Nothing is written there any more: puts under way continue as refused ones.
  // Returns false if there is no such key.
  bool remove(std::uint64_t key) {
    Region* region = find(key);
    if (region == nullptr) return false;
    while (!region->arriving.empty()) {
      InMessage& put = as_whole(region->arriving.front());
      region->arriving.pop_front();
      put.refuse();
    }
    regions_.erase(key);
    return true;
  }

  void count_read(Region& region) {
    ++region.use.reads;
    ++use_.reads;
  }
  void count_write(Region& region) {
    ++region.use.writes;
    ++use_.writes;
  }
  // Counts the use of all regions, including removed ones.
  const RemoteUse& use() const { return use_; }
  RemoteUse use(std::uint64_t key) const {
    const auto found = regions_.find(key);
    return found == regions_.end() ? RemoteUse() : found->second.use;
  }

  // The events that puts leave, for the program.
  std::deque<RemoteEvent>& events() { return events_; }

 private:
  std::unordered_map<std::uint64_t, Region> regions_;
  std::deque<RemoteEvent> events_;
  RemoteUse use_;
};

}  // namespace pullman::message
