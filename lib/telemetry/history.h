// Knows when what the rows show began: since when a peer is waited for, or a receive that names it;
// when a rail lost packets first and last, and when each kind of error happened. The engine counts,
// and does not remember when; so this is known as exactly as rows are collected. Reads no clock.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "telemetry/rows.h"

namespace pullman::telemetry {

class History {
 public:
  // Completes rows that have just been collected. Those of errors that are counters are added.
  void complete(Instant now, Rows& rows);

 private:
  struct Wait {
    std::string reason;
    std::uint64_t progress = 0;  // what grows, or changes, while it goes on
    std::uint64_t since = 0;
    std::uint64_t round = 0;
  };
  struct Receives {
    std::uint64_t mark = 0;
    std::uint64_t since = 0;
    std::uint64_t round = 0;
  };
  struct Loss {
    std::uint64_t lost = 0;
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::uint64_t round = 0;
  };

  void complete_waits(std::uint64_t now, Rows& rows);
  void complete_receives(std::uint64_t now, Rows& rows);
  void complete_losses(std::uint64_t now, Rows& rows);
  void add_errors(std::uint64_t now, Rows& rows);

  std::uint64_t round_ = 0;
  std::unordered_map<std::uint64_t, Wait> waits_;           // by peer
  std::unordered_map<std::uint64_t, Receives> receives_;    // by peer
  std::unordered_map<std::uint64_t, Loss> losses_;          // by peer and rail
  std::unordered_map<std::string_view, ErrorRow> counted_;  // by the kind of error
};

}  // namespace pullman::telemetry
