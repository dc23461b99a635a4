// The memory that a pair is made of, and the process that has the other end of it: an interface, so
// that neither the pair nor what is above it does any I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "shm/process.h"
#include "shm/process_memory.h"

namespace pullman::shm {

// What an end tells the other of its process.
struct Told {
  std::uint64_t ids = 0;  // names the namespace of process ids
  ProcessName process;
  Word word;
};

class Memory {
 public:
  virtual ~Memory() = default;

  // Returns the bytes, which begin at a cache line and are zero when the memory is new.
  virtual std::span<std::byte> bytes() const = 0;
  // Returns the name by which the other end joins. forget_name() is called once it has.
  virtual const std::string& name() const = 0;
  virtual void forget_name() = 0;

  virtual Told own() const = 0;
  // The other end has joined, and told this of its process. Called before those below.
  virtual void meet(const Told& other) = 0;
  // Returns whether that process's memory can be read.
  virtual bool can_read() const = 0;
  // Copies bytes of it. Returns false if that is not possible; some may have been copied then.
  virtual bool read(std::uint64_t address, std::span<std::byte> into) const = 0;
  // Returns false once its end is known (pairs.h).
  virtual bool is_alive() const = 0;
};

}  // namespace pullman::shm
