// Which peer is which process of the world.
//
// Connects to a process when it is first needed, and says who calls. Learns from the introductions
// of others who has connected to this one. A handle that has ended is replaced by a new connection.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pullman/context.h"
#include "world/mail.h"
#include "world/place.h"

namespace pullman::world {

class Roster {
 public:
  // Where a process can be reached, as Context::connect() takes it. May throw Error.
  using AddressesOf = std::function<std::vector<std::string>(unsigned rank)>;

  Roster(Context& context, Mail& mail, Place place, AddressesOf addresses_of)
      : context_(context), mail_(mail), place_(place), addresses_of_(std::move(addresses_of)) {}

  // Notes that a process is connected under that handle.
  void remember(unsigned rank, PeerId peer);
  // To send to it. Throws Error if its address cannot be found out, or it cannot be called.
  PeerId peer(unsigned rank);
  // To receive from it: nothing if it is not connected yet. It may have ended.
  std::optional<PeerId> known(unsigned rank);
  // Also for a handle that has ended.
  std::optional<unsigned> rank_of(PeerId peer);

  // --- by any thread

  // Returns the processes that are connected, or being connected to, with their handles.
  std::vector<std::pair<unsigned, PeerId>> connected();
  // Returns the rank of a peer if that is the process' latest handle.
  std::optional<unsigned> rank_of_latest(PeerId peer);

 private:
  struct Hash {
    std::size_t operator()(PeerId peer) const {
      return std::hash<std::uint64_t>()(std::uint64_t{peer.generation} << 32 | peer.index);
    }
  };
  struct Known {
    PeerId peer;
    std::size_t calls = 0;  // how often it was called
  };

  bool is_alive(PeerId peer) const;
  std::optional<Known> find(unsigned rank);
  std::optional<unsigned> find(PeerId peer);
  void note_introductions();
  void note_those_there();
  PeerId call(unsigned rank, std::size_t calls);

  Context& context_;
  Mail& mail_;
  const Place place_;
  const AddressesOf addresses_of_;
  // A letter that one thread has taken is noted before another looks. Callbacks may come back here.
  std::recursive_mutex noting_;
  std::mutex changing_;  // what follows; the context is not called with it
  std::unordered_map<unsigned, Known> peers_;
  std::unordered_map<PeerId, unsigned, Hash> ranks_;
};

}  // namespace pullman::world
