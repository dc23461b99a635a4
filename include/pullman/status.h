// What became of an operation, and what an exception says. Any thread may ask; what is returned is
// static, and nobody's to free.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace pullman {

enum class Status : std::uint8_t {
  kOk,               // done
  kPending,          // accepted, not finished yet
  kTruncated,        // received, but the message was longer than the buffer: its head was kept
  kCancelled,        // the receive was cancelled before a message matched it
  kUnknownPeer,      // no such peer: never connected, or its handle is from an earlier one
  kUnreachable,      // the peer was silent for Config::peer_timeout
  kPeerClosed,       // the peer said good-bye before the operation finished
  kPeerDied,         // silent for so long, and its host says that nobody listens there any more
  kPeerRestarted,    // another process answers at the peer's address now
  kRefused,          // the peer is connected already, under another of its addresses
  kClosed,           // this context was closed
  kInvalidArgument,  // the call cannot mean anything: see its documentation
  kBusy,             // the request is still pending; wait for it or cancel it first
  kTooManyPeers,     // Config::max_peers are connected already
  kTimedOut,         // the time given to the call was over; the operation goes on
  kBadOption,        // a Config option is out of its range (exceptions only)
  kNoDevice,         // no usable NIC, or not the one asked for (exceptions only)
  kRefusedAccess,  // put, get, atomic: the peer has no such region, room or right; nothing written
  kNoMemory,  // receive: what it waits for cannot come, since messages that nobody receives use all
              // the memory its sender may have here (Config::unexpected_bytes says when)
};

// A sentence that says what happened and what to do.
[[gnu::visibility("default")]] const char* to_sentence(Status status);

// The enumerator's name, for logs: "kUnreachable" is "unreachable".
[[gnu::visibility("default")]] const char* name(Status status);

// Thrown at set-up only (constructing a Context, reading a Config, connect() with an address that
// cannot be parsed); never by the data path.
class __attribute__((visibility("default"))) Error : public std::runtime_error {
 public:
  Error(Status status, const std::string& sentence)
      : std::runtime_error(sentence), status_(status) {}
  Status status() const { return status_; }

 private:
  Status status_;
};

}  // namespace pullman
