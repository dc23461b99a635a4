#include "nic/fabric/errors.h"

#include <rdma/fi_errno.h>

namespace pullman::nic::fabric {
namespace {

ErrorClass class_of_status(int status) {
  constexpr int kFlushError = 5;
  constexpr int kBadResponse = 7;
  constexpr int kRemoteInvalidRequest = 9;
  constexpr int kRemoteAccess = 10;
  constexpr int kRemoteOperation = 11;
  constexpr int kRetriesExceeded = 12;
  constexpr int kReceiverNotReady = 13;
  constexpr int kRemoteInvalidRead = 15;
  constexpr int kRemoteAbort = 16;
  constexpr int kFatal = 19;
  constexpr int kResponseTimeout = 20;
  constexpr int kGeneral = 21;
  switch (status) {
    case kRetriesExceeded:
    case kResponseTimeout:
      return ErrorClass::kTimeout;
    case kFlushError:
      return ErrorClass::kFlushed;
    case kFatal:
    case kGeneral:
      return ErrorClass::kDevice;
    case kBadResponse:
    case kRemoteInvalidRequest:
    case kRemoteAccess:
    case kRemoteOperation:
    case kReceiverNotReady:
    case kRemoteInvalidRead:
    case kRemoteAbort:
      return ErrorClass::kRemote;
    default:
      return ErrorClass::kLocal;
  }
}

}  // namespace

ErrorClass class_of(int error) {
  switch (error) {
    case FI_EOTHER:  // usnic: an internal error of the device
    case FI_ECRC:
      return ErrorClass::kDevice;
    case FI_ETRUNC:
    case FI_ENORX:
      return ErrorClass::kRemote;
    default:
      return nic::class_of(error);
  }
}

ErrorClass class_of(const fi_cq_err_entry& entry, bool verbs_status) {
  if (verbs_status && entry.err == FI_EIO) return class_of_status(entry.prov_errno);
  return class_of(entry.err);
}

}  // namespace pullman::nic::fabric
