#include "nic/error_class.h"

#include <cerrno>

namespace pullman::nic {

const char* name(ErrorClass kind) {
  switch (kind) {
    case ErrorClass::kTimeout:
      return "timeout";
    case ErrorClass::kFlushed:
      return "flushed";
    case ErrorClass::kDevice:
      return "device";
    case ErrorClass::kRemote:
      return "remote";
    case ErrorClass::kLocal:
      return "local";
  }
  return "?";
}

ErrorClass class_of(int error) {
  switch (error) {
    case ETIMEDOUT:
    case ETIME:
      return ErrorClass::kTimeout;
    case ECANCELED:
    case ECONNABORTED:
    case ESHUTDOWN:
      return ErrorClass::kFlushed;
    case EIO:
    case ENETDOWN:
    case ENODEV:
    case ENXIO:
      return ErrorClass::kDevice;
    // ICMP messages, and the answers of a remote TCP.
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENOPROTOOPT:
    case EPROTO:
    case EREMOTEIO:
      return ErrorClass::kRemote;
    default:
      return ErrorClass::kLocal;
  }
}

}  // namespace pullman::nic
