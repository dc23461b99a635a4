#include "ofi/errors.h"

#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>

#include <cstring>

#include "base/log.h"
#include "ofi/provider.h"

namespace pullman::ofi {

int error_number(Status status) {
  switch (status) {
    case Status::kOk:
      return 0;
    case Status::kPending:
    case Status::kBusy:
      return FI_EAGAIN;
    case Status::kTruncated:
      return FI_ETRUNC;
    case Status::kCancelled:
    case Status::kClosed:
      return FI_ECANCELED;
    case Status::kUnknownPeer:
      return FI_EADDRNOTAVAIL;
    case Status::kUnreachable:
      return FI_EHOSTUNREACH;
    case Status::kPeerClosed:
      return FI_ECONNABORTED;
    case Status::kPeerDied:
    case Status::kPeerRestarted:
      return FI_ECONNRESET;
    case Status::kRefused:
      return FI_ECONNREFUSED;
    case Status::kInvalidArgument:
    case Status::kBadOption:
      return FI_EINVAL;
    case Status::kTooManyPeers:
      return FI_ENOMEM;
    case Status::kTimedOut:
      return FI_ETIMEDOUT;
    case Status::kNoDevice:
      return FI_ENODEV;
    case Status::kRefusedAccess:
      return FI_EACCES;
    case Status::kNoMemory:
      return FI_ENOMEM;
    case Status::kIncompatible:
      return FI_EKEYREJECTED;
  }
  return FI_EOTHER;
}

Status status_of(int number) {
  for (int i = 0; i <= static_cast<int>(Status::kIncompatible); ++i) {
    if (error_number(static_cast<Status>(i)) == number) return static_cast<Status>(i);
  }
  return Status::kInvalidArgument;
}

const char* write_sentence_of(int provider_number, char* out, std::size_t room) {
  const char* sentence = to_sentence(static_cast<Status>(provider_number));
  if (out != nullptr && room > 0) {
    std::strncpy(out, sentence, room - 1);
    out[room - 1] = '\0';
  }
  return sentence;
}

void tell(const Error& error) {
  FI_WARN(&provider(), FI_LOG_CORE, "%s\n", error.what());
  log().error("{}", error.what());
}

}  // namespace pullman::ofi
