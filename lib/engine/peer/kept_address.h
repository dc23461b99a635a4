// A compact form of an address that is kept for long. An IP address takes 22 bytes in place, where
// nic::Address, which holds an address of any fabric, takes 58. Longer addresses go to the heap.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "nic/address.h"

namespace pullman::engine {

class KeptAddress {
 public:
  KeptAddress() = default;
  ~KeptAddress() { forget(); }
  KeptAddress(const KeptAddress&) = delete;
  KeptAddress& operator=(const KeptAddress&) = delete;

  KeptAddress& operator=(const nic::Address& address) {
    forget();
    kind_ = address.kind;
    length_ = address.length;
    if (is_short()) {
      std::copy_n(address.bytes.begin(), length_, bytes_.begin());
    } else {
      const auto* kept = new nic::Address(address);
      std::memcpy(bytes_.data(), &kept, sizeof(const nic::Address*));
    }
    return *this;
  }

  operator nic::Address() const {
    if (!is_short()) return *on_heap();
    nic::Address address;
    address.kind = kind_;
    address.length = length_;
    std::copy_n(bytes_.begin(), length_, address.bytes.begin());
    return address;
  }

  bool operator==(const nic::Address& other) const { return nic::Address(*this) == other; }
  bool operator==(const KeptAddress& other) const { return *this == nic::Address(other); }

 private:
  bool is_short() const { return length_ <= bytes_.size(); }
  const nic::Address* on_heap() const {
    const nic::Address* kept = nullptr;
    std::memcpy(&kept, bytes_.data(), sizeof(const nic::Address*));
    return kept;
  }
  void forget() {
    if (!is_short()) delete on_heap();
    length_ = 0;
  }

  std::uint8_t kind_ = 0;
  std::uint8_t length_ = 0;
  // An IPv6 address, port and scope, or the pointer to a longer address.
  std::array<std::byte, 22> bytes_{};
};

}  // namespace pullman::engine
