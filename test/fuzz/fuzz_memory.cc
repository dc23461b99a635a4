// A peer on this host that writes any bytes at all to its half of the memory that is shared,
// between any two steps of the end that is tried. What that end reads lies within the ring; frames
// are read as they are in packets; a packet that was posted is taken back once.
//
// Input: a script of steps, each a byte that says which, and what it needs.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "channel/packet.h"
#include "engine/local/memory_rail.h"
#include "wire/frame.h"

namespace {

using namespace pullman;
using engine::MemoryRail;

void require(bool holds) {
  if (!holds) std::abort();
}

class Script {
 public:
  explicit Script(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool ended() const { return bytes_.empty(); }
  std::span<const std::byte> take(std::size_t most) {
    const auto taken = bytes_.first(std::min(most, bytes_.size()));
    bytes_ = bytes_.subspan(taken.size());
    return taken;
  }
  std::size_t number() {
    std::uint16_t number = 0;
    const auto taken = take(sizeof number);
    std::memcpy(&number, taken.data(), taken.size());
    return number;
  }

 private:
  std::span<const std::byte> bytes_;
};

// Memory of this process. The peer's process is this one, too, whose memory can be read where it
// is.
class Memory final : public shm::Memory {
 public:
  explicit Memory(std::span<std::byte> bytes) : bytes_(bytes) {}

  std::span<std::byte> bytes() const override { return bytes_; }
  const std::string& name() const override { return name_; }
  void forget_name() override {}
  shm::Told own() const override { return {}; }
  void meet(const shm::Told&) override {}
  bool can_read() const override { return true; }
  bool read(std::uint64_t address, std::span<std::byte>) const override { return address != 0; }
  bool is_alive() const override { return true; }

 private:
  std::span<std::byte> bytes_;
  std::string name_;
};

struct alignas(shm::kLineBytes) Shared {
  std::byte bytes[shm::Pair::kBytes];
};

// The end that is tried has the first half, the peer the second.
struct Ends {
  ~Ends() {
    while (channel::Packet* packet = rail.take_unread()) pool.give_back(*packet);
  }

  std::span<std::byte> peers_half() {
    return std::span(shared.bytes).subspan(shm::Pair::kEndBytes);
  }
  bool holds(std::span<const std::byte> record) {
    const auto half = peers_half();
    return record.data() >= half.data() &&
           record.data() + record.size() <= half.data() + half.size();
  }

  Shared shared{};
  channel::PacketPool pool{64, 1472};
  MemoryRail rail{shm::Pair(std::make_unique<Memory>(shared.bytes), true)};
  shm::RingWriter peer{peers_half().subspan(shm::kLineBytes)};
  wire::FrameList frames;
};

void overwrite(Ends& ends, Script& script) {
  const std::size_t at = script.number() % shm::Pair::kEndBytes;
  const auto bytes = script.take(script.number() % 64);
  const auto place = ends.peers_half().subspan(at);
  std::copy_n(bytes.begin(), std::min(bytes.size(), place.size()), place.begin());
}

// A record that is right, of any frames.
void write_record(Ends& ends, Script& script) {
  const bool marked = script.number() % 2 != 0;
  const auto bytes = script.take(script.number() % 256);
  if (std::byte* place = ends.peer.reserve(bytes.size())) {
    std::copy(bytes.begin(), bytes.end(), place);
    ends.peer.commit(marked);
  }
}

void read_record(Ends& ends) {
  const auto record = ends.rail.front();
  if (!record) return;
  require(ends.holds(*record));
  if (ends.rail.is_reference()) {
    const auto reference = MemoryRail::reference(*record);
    if (reference) require(ends.holds(reference->frame));
  } else if (ends.frames.read(*record)) {
    while (const wire::Frame* frame = ends.frames.next()) {
      if (!frame->data.empty()) require(ends.holds(frame->data));
    }
  }
  ends.rail.pop();
}

void post(Ends& ends, Script& script) {
  if (!ends.rail.has_room()) return;
  channel::Packet* packet = ends.pool.take(1472);
  if (packet == nullptr) return;
  packet->used = static_cast<std::uint32_t>(wire::kHeaderBytes + script.number() % 1000);
  ends.rail.post(*packet);
}

void take_read(Ends& ends) {
  const std::size_t before = ends.rail.in_flight();
  std::size_t taken = 0;
  while (channel::Packet* packet = ends.rail.take_read()) {
    ++taken;
    ends.pool.give_back(*packet);
  }
  require(taken <= before && ends.rail.in_flight() == before - taken);
  ends.rail.flush();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Script script(std::as_bytes(std::span(data, size)));
  Ends ends;
  while (!script.ended()) {
    switch (static_cast<unsigned>(script.take(1).front()) % 8) {
      case 0:
      case 1:
        overwrite(ends, script);
        break;
      case 2:
        write_record(ends, script);
        break;
      case 3:
      case 4:
        read_record(ends);
        break;
      case 5:
        post(ends, script);
        break;
      case 6:
        take_read(ends);
        break;
      case 7:
        static_cast<void>(ends.rail.prepare_to_block());
        static_cast<void>(ends.rail.must_wake());
        static_cast<void>(ends.rail.is_over());
        break;
    }
  }
  return 0;
}
