// Writes packets as pcapng (draft-ietf-opsawg-pcapng), for Wireshark and its like.
//
// Packets of ports with IP addresses are written as the UDP datagrams that they were, or would have
// been: IP and UDP headers are made up from the addresses, zeros where one is not known. Those of
// other ports are written as they are, as LINKTYPE_USER0. Knows no packets: tools/wireshark takes
// them apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nic/address.h"

namespace pullman::nic::trace {

struct PcapngInterface {
  std::string_view name;
  std::string_view description;
  Address address;             // its family is that of all its packets
  std::size_t snap_bytes = 0;  // how many bytes of a packet are kept; 0: all
};

struct PcapngPacket {
  std::uint32_t interface = 0;  // in the order they were added
  std::int64_t time_ns = 0;     // since 1970
  bool sent = false;            // otherwise received
  const Address* source = nullptr;
  const Address* destination = nullptr;
  std::span<const std::byte> bytes;  // the first ones
  std::size_t length = 0;            // of the whole packet
  std::string_view comment{};
};

struct PcapngStatistics {
  std::uint32_t interface = 0;
  std::int64_t time_ns = 0;
  std::uint64_t received = 0;  // packets, also those that are not in the file any more
  std::uint64_t dropped = 0;   // of those, the ones that are not
};

class PcapngWriter {
 public:
  // Begins the file. `out` outlives it.
  PcapngWriter(std::FILE* out, std::string_view application, std::string_view comment);

  void add_interface(const PcapngInterface& interface);
  void write(const PcapngPacket& packet);
  void write(const PcapngStatistics& statistics);
  // Writes what is still in memory. Returns 0, or the errno of the first write that has failed.
  int finish_file();

 private:
  void begin(std::uint32_t type);
  void put16(std::uint16_t value);
  void put32(std::uint32_t value);
  void put_bytes(std::span<const std::byte> bytes);
  void put_time(std::int64_t ns);
  void put_option(std::uint16_t code, std::span<const std::byte> value);
  void put_option(std::uint16_t code, std::string_view text);
  void put_option64(std::uint16_t code, std::uint64_t value);
  void finish();
  void note_error();

  std::FILE* const out_;
  int error_ = 0;
  std::vector<std::uint8_t> families_;  // of the interfaces
  std::vector<std::byte> block_;        // the block being written
};

}  // namespace pullman::nic::trace
