// Which class each driver gives to an error: nic/error_class.h, nic/fabric/errors.h,
// nic/udp/errors.h.
#include "nic/error_class.h"

#include <rdma/fi_errno.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <vector>

#include "nic/fabric/errors.h"
#include "nic/udp/errors.h"

namespace pullman::nic {
namespace {

using Class = ErrorClass;

struct Row {
  int error;
  Class kind;
};

const std::vector<Row>& system_errors() {
  static const std::vector<Row> rows = {
      {ETIMEDOUT, Class::kTimeout},     // TCP gave up sending again
      {ECANCELED, Class::kFlushed},     // the operation was cancelled
      {ECONNABORTED, Class::kFlushed},  // ended before it was taken
      {ESHUTDOWN, Class::kFlushed},     // the endpoint was shut down
      {EIO, Class::kDevice},
      {ENETDOWN, Class::kDevice},  // the interface is down
      {ENODEV, Class::kDevice},    // it has gone
      {ENXIO, Class::kDevice},
      {ECONNREFUSED, Class::kRemote},  // ICMP: nobody listens there
      {ECONNRESET, Class::kRemote},
      {EPIPE, Class::kRemote},
      {EHOSTUNREACH, Class::kRemote},
      {EHOSTDOWN, Class::kRemote},
      {ENOPROTOOPT, Class::kRemote},  // ICMP: the protocol is forbidden there
      {ENETUNREACH, Class::kLocal},   // no route here: what the network says comes by the error
                                      // queue
      {EPERM, Class::kLocal},         // a packet filter of this host
      {EACCES, Class::kLocal},
      {ENOBUFS, Class::kLocal},
      {ENOMEM, Class::kLocal},
      {EINVAL, Class::kLocal},
      {EBADF, Class::kLocal},
      {EADDRNOTAVAIL, Class::kLocal},
  };
  return rows;
}

fi_cq_err_entry completion(int error, int of_provider = 0) {
  fi_cq_err_entry out{};
  out.err = error;
  out.prov_errno = of_provider;
  return out;
}

TEST_CASE("an error number of the system has one class, for the kernel's drivers and for fabric") {
  for (const Row& row : system_errors()) {
    INFO(std::strerror(row.error));
    CHECK(name(class_of(row.error)) == std::string(name(row.kind)));
    CHECK(fabric::class_of(row.error) == row.kind);
    CHECK(fabric::class_of(completion(row.error), false) == row.kind);
  }
}

TEST_CASE("an error number of libfabric alone has a class") {
  const std::vector<Row> rows = {
      {FI_EOTHER, Class::kDevice},   // usnic: internal error
      {FI_ECRC, Class::kDevice},     // damaged on the way
      {FI_ETRUNC, Class::kRemote},   // longer than the receive
      {FI_ENORX, Class::kRemote},    // no buffer posted there
      {FI_EOVERRUN, Class::kLocal},  // a completion queue was not read
      {FI_ENOAV, Class::kLocal},
  };
  for (const Row& row : rows) {
    INFO(fi_strerror(row.error));
    CHECK(name(fabric::class_of(row.error)) == std::string(name(row.kind)));
  }
}

TEST_CASE(
    "with verbs the class follows the work completion's status, not the EIO that comes with it") {
  const std::vector<Row> rows = {
      {1, Class::kLocal},     // IBV_WC_LOC_LEN_ERR
      {2, Class::kLocal},     // IBV_WC_LOC_QP_OP_ERR
      {4, Class::kLocal},     // IBV_WC_LOC_PROT_ERR
      {5, Class::kFlushed},   // IBV_WC_WR_FLUSH_ERR
      {7, Class::kRemote},    // IBV_WC_BAD_RESP_ERR
      {9, Class::kRemote},    // IBV_WC_REM_INV_REQ_ERR
      {10, Class::kRemote},   // IBV_WC_REM_ACCESS_ERR
      {11, Class::kRemote},   // IBV_WC_REM_OP_ERR
      {12, Class::kTimeout},  // IBV_WC_RETRY_EXC_ERR
      {13, Class::kRemote},   // IBV_WC_RNR_RETRY_EXC_ERR
      {19, Class::kDevice},   // IBV_WC_FATAL_ERR
      {20, Class::kTimeout},  // IBV_WC_RESP_TIMEOUT_ERR
      {21, Class::kDevice},   // IBV_WC_GENERAL_ERR
  };
  for (const Row& row : rows) {
    INFO("status " << row.error);
    CHECK(name(fabric::class_of(completion(FI_EIO, row.error), true)) ==
          std::string(name(row.kind)));
    CHECK(fabric::class_of(completion(FI_EIO, row.error), false) == Class::kDevice);
  }
  CHECK(fabric::class_of(completion(FI_ECANCELED, 12), true) == Class::kFlushed);
}

TEST_CASE("only the class of flushed operations means the end of an endpoint") {
  for (std::size_t i = 0; i < kErrorClasses; ++i) {
    const auto kind = static_cast<Class>(i);
    CHECK(fabric::is_fatal(kind) == (kind == Class::kFlushed));
  }
}

TEST_CASE("a packet that udp loses has the class of its error, unless it was too long") {
  for (const Row& row : system_errors()) {
    PortCounters counters;
    note_lost(udp::trouble_of(row.error, false), row.error, counters);
    INFO(std::strerror(row.error));
    CHECK(counters.send_errors == 1);
    CHECK(counters.errors.seen() == ErrorCounts::bit(row.kind));
    CHECK(counters.errors.of(row.kind).times == 1);
    CHECK(counters.errors.of(row.kind).last == row.error);
  }
  PortCounters counters;
  note_lost(udp::trouble_of(EMSGSIZE, false), EMSGSIZE, counters);
  CHECK(counters.send_errors == 1);
  CHECK(counters.too_long == 1);
  CHECK(counters.errors.seen() == 0);
}

}  // namespace
}  // namespace pullman::nic
