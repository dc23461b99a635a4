#include "pullman/status.h"

namespace pullman {

const char* to_sentence(Status status) {
  switch (status) {
    case Status::kOk:
      return "done";
    case Status::kPending:
      return "accepted and not finished yet: call progress(), test() or wait()";
    case Status::kTruncated:
      return "the message was longer than the receive buffer: post a larger one (probe() tells the "
             "length)";
    case Status::kCancelled:
      return "the receive was cancelled before a message matched it";
    case Status::kUnknownPeer:
      return "no such peer: connect() to it first, and use the handle it gave";
    case Status::kUnreachable:
      return "the peer was silent for too long (peer_timeout): see that it runs and makes calls "
             "that "
             "move packets, that both ends use the same driver, checksum and key, and that the "
             "network carries UDP both ways";
    case Status::kPeerClosed:
      return "the peer closed the connection before this was finished";
    case Status::kPeerDied:
      return "nobody listens at the peer's address any more: its process ended without saying "
             "good-bye; connect() again when it was started again";
    case Status::kPeerRestarted:
      return "another process answers at the peer's address now: connect() to it again";
    case Status::kRefused:
      return "the peer did not accept the connection: it is connected under another address "
             "already";
    case Status::kClosed:
      return "this context was closed";
    case Status::kInvalidArgument:
      return "an argument is invalid: see the function's documentation";
    case Status::kBusy:
      return "the request is still pending: wait for it or use another one";
    case Status::kTooManyPeers:
      return "as many peers as max_peers allows are connected: raise it (PULLMAN_MAX_PEERS)";
    case Status::kTimedOut:
      return "the time given was over; the operation goes on";
    case Status::kBadOption:
      return "a configuration option is out of its range";
    case Status::kNoDevice:
      return "no usable NIC: see pullman-info";
    case Status::kRefusedAccess:
      return "the peer has no region of that key, it ends before, or it does not grant that "
             "access: "
             "see register_region() there";
    case Status::kNoMemory:
      return "messages that nobody receives use all the memory for them, and the peer can send no "
             "more: receive some, or raise unexpected_bytes (PULLMAN_UNEXPECTED_BYTES)";
    case Status::kIncompatible:
      return "the peer protects its packets in another way than this process: PULLMAN_SECURITY "
             "must "
             "be the same in a whole job";
  }
  return "?";
}

const char* name(Status status) {
  switch (status) {
    case Status::kOk:
      return "ok";
    case Status::kPending:
      return "pending";
    case Status::kTruncated:
      return "truncated";
    case Status::kCancelled:
      return "cancelled";
    case Status::kUnknownPeer:
      return "unknown peer";
    case Status::kUnreachable:
      return "unreachable";
    case Status::kPeerClosed:
      return "peer closed";
    case Status::kPeerDied:
      return "peer died";
    case Status::kPeerRestarted:
      return "peer restarted";
    case Status::kRefused:
      return "refused";
    case Status::kClosed:
      return "closed";
    case Status::kInvalidArgument:
      return "invalid argument";
    case Status::kBusy:
      return "busy";
    case Status::kTooManyPeers:
      return "too many peers";
    case Status::kTimedOut:
      return "timed out";
    case Status::kBadOption:
      return "bad option";
    case Status::kNoDevice:
      return "no device";
    case Status::kRefusedAccess:
      return "refused access";
    case Status::kNoMemory:
      return "no memory";
    case Status::kIncompatible:
      return "incompatible";
  }
  return "?";
}

}  // namespace pullman
