// A host without an engine: an attacker off the path, which sends what it likes and sees only the
// packets sent to it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "sim/scene.h"
#include "wire/hello.h"

namespace pullman::sim {

class Stranger {
 public:
  struct Heard {
    std::size_t from = 0;
    wire::PacketHeader header;
    std::optional<wire::Hello> hello;
  };
  // The packet of a HELLO or WELCOME.
  struct Shape {
    wire::PacketType type = wire::PacketType::kHello;
    wire::ConnectionId to = {};                  // a HELLO is for no connection
    std::uint32_t repetition = 0;                // added to its first number
    std::size_t body_bytes = 328;                // padded to this if shorter
    std::span<const std::byte> early_data = {};  // frames behind it
  };

  // Ends the process of `host`, and records everything that comes to its address from then on.
  Stranger(Scene& scene, std::size_t host);

  // Returns a HELLO of a new caller at the stranger's address, each with its own epoch and
  // connection id.
  wire::Hello hello(std::size_t to);
  // The same, but with the address of `whom`.
  wire::Hello hello_as(std::size_t whom, std::size_t to);

  void say(std::size_t to, const wire::Hello& hello, const Shape& shape);
  void say(std::size_t to, const wire::Hello& hello) { say(to, hello, Shape{}); }
  // Sends a packet to connection `id`, which proves that its sender has seen the WELCOME.
  void prove(std::size_t to, wire::ConnectionId id, const wire::Hello& hello);

  // Sends these frames in a packet whose number is the HELLO's first plus `behind`.
  void tell(std::size_t to, wire::ConnectionId id, const wire::Hello& hello, std::uint32_t behind,
            std::span<const std::byte> frames);

  std::size_t heard(wire::PacketType type) const;
  const std::vector<Heard>& heard() const { return heard_; }

 private:
  void put(std::size_t to, std::span<const std::byte> packet);

  Scene& scene_;
  const std::size_t host_;
  std::uint32_t serial_ = 0;
  std::vector<Heard> heard_;
};

}  // namespace pullman::sim
