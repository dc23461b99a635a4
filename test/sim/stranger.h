// A host without an engine: an attacker off the path. It says what it likes and hears what it is
// sent.
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
  // How a HELLO or WELCOME is put into a packet.
  struct Shape {
    wire::PacketType type = wire::PacketType::kHello;
    wire::ConnectionId to = {};                  // HELLO goes to nobody in particular
    std::uint32_t repetition = 0;                // its number is the first one plus this
    std::size_t body_bytes = 328;                // padded to, if it is not longer
    std::span<const std::byte> early_data = {};  // frames that follow
  };

  // Ends the process of `host`; hears everything that comes to its address from now on.
  Stranger(Scene& scene, std::size_t host);

  // What the engine of `to` would take for a caller it does not know, at the stranger's address.
  // Each has an epoch and a connection of its own.
  wire::Hello hello(std::size_t to);
  // The same, but it says that it comes from the address of `whom`.
  wire::Hello hello_as(std::size_t whom, std::size_t to);

  void say(std::size_t to, const wire::Hello& hello, const Shape& shape);
  void say(std::size_t to, const wire::Hello& hello) { say(to, hello, Shape{}); }
  // A packet that knows `id`, its number the first of `hello` and one: the proof of who heard it.
  void prove(std::size_t to, wire::ConnectionId id, const wire::Hello& hello);

  // These frames in a packet of that number behind the first of `hello`.
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
