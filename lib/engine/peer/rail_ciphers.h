// The ciphers of one rail. They are made when a packet needs them, by security/packet_protection.h,
// and can be dropped at any time: they are made again from what the peers know of each other.
#pragma once

#include <array>
#include <boost/intrusive/list.hpp>
#include <cstdint>
#include <optional>

#include "base/time.h"
#include "crypto/packet_cipher.h"

namespace pullman::engine {

struct Rail;

// The cipher for the numbers of one phase (wire.md 12.4).
struct PhaseCipher {
  std::uint64_t phase = 0;
  crypto::PacketCipher cipher;
};

// A rail that was used lately is in a list; a rail that ends leaves it.
using UseHook =
    boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

struct RailCiphers : UseHook {
  explicit RailCiphers(Rail& of) : rail(of) {}

  static constexpr std::size_t kSeries = 2;  // sequenced packets, control packets

  Rail& rail;
  std::array<std::optional<PhaseCipher>, kSeries> sends;
  // Of two phases that follow each other, since packets of both may come in any order.
  std::array<std::array<std::optional<PhaseCipher>, 2>, kSeries> receives;
  Instant used_at{};
};

}  // namespace pullman::engine
