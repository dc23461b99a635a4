#include "world/card.h"

#include <algorithm>

#include "pullman/status.h"

namespace pullman::world {
namespace {

constexpr std::byte kVersion{1};
constexpr std::size_t kFixed = 2;

}  // namespace

Bytes card_of(const Addresses& addresses, std::size_t limit) {
  Bytes card(limit);
  std::size_t end = kFixed;
  std::size_t count = 0;
  while (count < std::min(addresses.size(), kMaxAddresses) &&
         end + wire::wire_bytes(addresses[count]) <= limit) {
    end = static_cast<std::size_t>(wire::put_address(card.data() + end, addresses[count]) -
                                   card.data());
    ++count;
  }
  card[0] = kVersion;
  card[1] = static_cast<std::byte>(count);
  card.resize(end);
  return card;
}

Addresses take_card(std::span<const std::byte>& in) {
  if (in.size() < kFixed || in[0] != kVersion) {
    throw Error(Status::kIncompatible,
                "a process of the job is of another version of Pullman: all need the same");
  }
  const auto count = std::to_integer<std::size_t>(in[1]);
  in = in.subspan(kFixed);
  Addresses addresses;
  while (addresses.size() < count) {
    nic::Address address;
    if (count > kMaxAddresses || !wire::take_address(in, address)) {
      throw Error(Status::kIncompatible, "the address of a process of the job cannot be read");
    }
    addresses.push_back(address);
  }
  return addresses;
}

}  // namespace pullman::world
