// The result of an operation, and the reason of an exception. Any thread may call the functions
// here; the strings they return are static.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace pullman {

// How an operation ended, or that it has not.
enum class Status : std::uint8_t {
  kOk,               // done
  kPending,          // accepted, not finished yet
  kTruncated,        // received, but the buffer was too short: it holds the message's first bytes
  kCancelled,        // the receive was cancelled before a message matched it
  kUnknownPeer,      // no such peer: never connected, or its handle is stale
  kUnreachable,      // the peer was silent for Config::peer_timeout
  kPeerClosed,       // the peer closed the connection (BYE), or began a new one, before the
                     // operation finished
  kPeerDied,         // the peer is silent, and its host reports its port closed (ICMP)
  kPeerRestarted,    // another process answers at the peer's address now
  kRefused,          // the peer is already connected under another of its addresses
  kClosed,           // this context was closed
  kInvalidArgument,  // an argument is invalid: see the call's documentation
  kBusy,             // the request is still pending; wait for it or cancel it first
  kTooManyPeers,     // Config::max_peers are connected already
  kTimedOut,         // the call's time limit expired; the operation goes on
  kBadOption,        // a Config option is out of its range (exceptions only)
  kNoDevice,         // there is no usable NIC, or none of those asked for (exceptions only)
  kRefusedAccess,  // put, get, atomic: the peer has no such region, it is too short, or it does not
                   // grant the access; nothing was written
  kNoMemory,  // receive: its message cannot arrive, since unexpected messages use all the memory
              // that the sender may have here (Config::unexpected_bytes says when)
  kIncompatible,  // the peer is a process of this job that protects its packets in another way
                  // (Config::security)
};

// Returns a sentence that says what happened and what to do.
[[gnu::visibility("default")]] const char* to_sentence(Status status);

// Returns the enumerator's name for logs: kUnreachable is "unreachable".
[[gnu::visibility("default")]] const char* name(Status status);

// Thrown only during set-up (constructing a Context, reading a Config, connect() to an address that
// cannot be parsed), never by the data path.
class __attribute__((visibility("default"))) Error : public std::runtime_error {
 public:
  // Makes one with a sentence that says what to do.
  Error(Status status, const std::string& sentence)
      : std::runtime_error(sentence), status_(status) {}
  // Returns what kind of error it is.
  Status status() const { return status_; }

 private:
  Status status_;
};

}  // namespace pullman
