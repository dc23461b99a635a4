// Plain TCP with TCP_NODELAY: messages framed by 16-byte headers, as a program without a library
// would do it.
//
// A payload is sent from where it lies, with its header in the same system call. The receiver reads
// what there is: the rest of a message to its place, and behind it up to 256 KiB of what follows.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "carrier.h"

namespace peers {

// Whether messages posted together leave together.
enum class Batching : std::uint8_t {
  kNone,   // each in a system call of its own, when it is sent
  kBytes,  // copied to a buffer, which leaves when it is full and at flush()
};

// What an end does that has nothing to send and nothing to receive.
enum class Idle : std::uint8_t { kPolls, kSleeps };

class Sockets final : public Carrier {
 public:
  Sockets(const Meeting& meeting, Batching batching, Idle idle);
  Sockets(const Sockets&) = delete;
  Sockets& operator=(const Sockets&) = delete;
  ~Sockets() override;

  bool send(std::size_t bytes) override;
  void flush() override;
  bool has_room(std::size_t) const override { return true; }  // the socket's buffer is the window
  bool idle() const override { return unsent_ == 0 && batch_.empty(); }
  void progress() override;
  std::uint64_t received() const override { return received_; }

 private:
  struct Header {
    std::uint64_t length = 0;
    std::uint64_t tag = 0;
  };

  void push();
  bool push_batch();
  void sleep() const;
  void take(std::size_t bytes);
  void take_staged(const std::byte* data, std::size_t bytes);
  void take_header(const Header& header);

  int socket_ = -1;
  Batching batching_;
  Idle idle_;
  std::vector<std::byte> out_;        // header and payload, ever the same
  std::size_t unsent_ = 0;            // of the message begun
  std::size_t begun_ = 0;             // its length on the wire
  std::vector<std::byte> batch_;      // kBytes: what waits to be sent
  std::vector<std::byte> in_;         // the payload of the message that comes in
  std::size_t missing_ = 0;           // bytes of it that are not here
  std::vector<std::byte> staged_;     // what came behind it
  std::array<std::byte, 16> head_{};  // a header that came in part
  std::size_t head_bytes_ = 0;
  std::uint64_t received_ = 0;
};

}  // namespace peers
