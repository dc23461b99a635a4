// What carries messages where Pullman does not: one end of a connection to one peer.
//
// Messages are of at most the job's size; receives for them are posted when it is made. Does not
// know what is measured. All but "sleeping" poll.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "perf/job.h"
#include "perf/raw_control.h"

namespace peers {

class Carrier {
 public:
  virtual ~Carrier() = default;

  // Begins to send a message of `bytes`. False if that is impossible now: progress(), and again.
  virtual bool send(std::size_t bytes) = 0;
  // Lets go of what send() kept back to send it together.
  virtual void flush() {}
  // Whether another message may be begun when `window` may be under way.
  virtual bool has_room(std::size_t window) const = 0;
  // Whether the memory of everything sent may be used again.
  virtual bool idle() const = 0;
  // One turn: takes what has arrived, moves what has not left.
  virtual void progress() = 0;
  // Messages taken since it was made.
  virtual std::uint64_t received() const = 0;
};

// What both ends have when a carrier is made: the job, and a line to agree on addresses.
struct Meeting {
  perf::RawControl& control;
  const perf::Options& options;
  const perf::Job& job;
  bool server() const { return options.host.empty(); }
};

// By the name of the driver: "sockets", "sleeping", "batched" or what libfabric calls a provider.
// Throws Failure.
std::unique_ptr<Carrier> make_carrier(const Meeting& meeting);

}  // namespace peers
