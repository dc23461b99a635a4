// Operations of a scene's hosts beyond plain send() and receive(): with options, one-sided.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/scene.h"

// Prints only the size and the first 16 bytes: Catch lays out four million of them for minutes.
template <>
struct Catch::StringMaker<std::vector<std::byte>> {
  static std::string convert(const std::vector<std::byte>& bytes) {
    const auto first = std::span(bytes).first(std::min<std::size_t>(bytes.size(), 16));
    return std::to_string(bytes.size()) + " bytes: " + Catch::rangeToString(first);
  }
};

namespace pullman::sim {

// Returns `size` bytes that follow from `salt`.
inline std::vector<std::byte> bytes_of(std::size_t size, unsigned salt) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31 + i / 251 + salt);
  return bytes;
}

class Doings {
 public:
  explicit Doings(Scene& scene) : scene_(scene) {}

  Act& send(std::size_t host, PeerId to, Tag tag, std::vector<std::byte> bytes,
            const SendOptions& options) {
    Act& act = begin(std::move(bytes));
    const std::span<const std::byte> whole[] = {act.bytes};
    act.returned = engine(host).sending().submit(
        now(host), {.peer = to, .tag = tag, .segments = whole, .options = options}, act.request);
    return touched(host, act);
  }
  Act& receive(std::size_t host, PeerId from, Tag tag, std::size_t capacity,
               const ReceiveOptions& options = {}) {
    Act& act = begin(std::vector<std::byte>(capacity));
    const std::span<std::byte> whole[] = {act.bytes};
    act.returned = engine(host).matching().submit(
        now(host), {.source = from, .tag = tag, .segments = whole, .options = options},
        act.request);
    return touched(host, act);
  }
  Act& receive_claimed(std::size_t host, const Claimed& claimed, std::size_t capacity) {
    Act& act = begin(std::vector<std::byte>(capacity));
    const std::span<std::byte> whole[] = {act.bytes};
    act.returned = engine(host).matching().receive_claimed(now(host), claimed, whole, act.request);
    return touched(host, act);
  }
  Act& put(std::size_t host, PeerId to, const RemotePlace& place, std::vector<std::byte> bytes,
           const PutOptions& options = {}) {
    Act& act = begin(std::move(bytes));
    const std::span<const std::byte> whole[] = {act.bytes};
    act.returned =
        engine(host).remote_memory().put(now(host), to, place, whole, options, act.request);
    return touched(host, act);
  }
  Act& get(std::size_t host, PeerId from, const RemotePlace& place, std::size_t length) {
    Act& act = begin(std::vector<std::byte>(length));
    const std::span<std::byte> whole[] = {act.bytes};
    act.returned = engine(host).remote_memory().get(now(host), from, place, whole, act.request);
    return touched(host, act);
  }
  // Adds to a 64-bit integer; a fetched value goes to `bytes`.
  Act& add(std::size_t host, PeerId to, const RemotePlace& place, std::uint64_t amount,
           bool fetches) {
    Act& act = begin(std::vector<std::byte>(fetches ? sizeof amount : 0));
    act.returned =
        engine(host).remote_memory().atomic(now(host), to, place,
                                            {.op = AtomicOp::kSum,
                                             .type = AtomicType::kUint64,
                                             .count = 1,
                                             .operand = std::as_bytes(std::span(&amount, 1)),
                                             .compare = {},
                                             .result = act.bytes},
                                            act.request);
    return touched(host, act);
  }
  Act& atomic(std::size_t host, PeerId to, const RemotePlace& place, Atomic atomic,
              std::size_t result_bytes) {
    Act& act = begin(std::vector<std::byte>(result_bytes));
    atomic.result = act.bytes;
    act.returned = engine(host).remote_memory().atomic(now(host), to, place, atomic, act.request);
    return touched(host, act);
  }

 private:
  engine::Engine& engine(std::size_t host) { return scene_.engine(host); }
  Instant now(std::size_t host) { return scene_.node(host).local_now(); }
  Act& begin(std::vector<std::byte> bytes) {
    Act& act = acts_.emplace_back();
    act.bytes = std::move(bytes);
    return act;
  }
  Act& touched(std::size_t host, Act& act) {
    scene_.node(host).touched();
    return act;
  }

  Scene& scene_;
  std::deque<Act> acts_;
};

}  // namespace pullman::sim
