// What all processes of a world do together, along a tree (tree.h): each talks to its parent and
// its children only, so few processes are connected for it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "world/mail.h"

namespace pullman::world {

class Collectives {
 public:
  using PeerOf = std::function<PeerId(unsigned rank)>;

  Collectives(Mail& mail, unsigned rank, unsigned size, PeerOf peer_of)
      : mail_(mail), rank_(rank), size_(size), peer_of_(std::move(peer_of)) {}

  void barrier();
  std::vector<Bytes> allgather(std::span<const std::byte> card);
  SharedBytes broadcast(unsigned root, SharedBytes message);

 private:
  // Numbers the call, as all processes do. After one that failed nobody knows who has which number.
  class Call;

  // Passes a message on to the children, and returns it; all but the root have it from their
  // parent.
  SharedBytes pass_down(std::uint32_t call, unsigned root, SharedBytes message);

  Mail& mail_;
  const unsigned rank_;
  const unsigned size_;
  const PeerOf peer_of_;
  std::uint32_t calls_ = 0;
  bool failed_ = false;
};

}  // namespace pullman::world
