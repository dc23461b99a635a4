// A ring of records from one process to another, in memory that both have mapped.
//
// There is one writer and one reader, which never wait for each other. A record is seen whole or
// not at all: its header is written last, and what says that there is no further record is the next
// header, which is 0 (as in Giacomoni et al., FastForward, PPoPP 2008). So a short record and the
// news of it are in one cache line; the reader's counter is read only by a writer that finds no
// room, or asks what has been read.
//
//   memory       64 bytes: how far the reader has come; then the records, a power of two of bytes
//   record       8 bytes: length + 1 (31 bits), whether it is marked, position of the record / 8
//                (32 bits); its bytes, padded to 8
//   skip         a header with the length kSkip: the next record is at the beginning
//
// The reader believes nothing that the memory says: a header that no writer would have written ends
// the ring. It copies no bytes, so they may still change while its user looks at them, if the other
// process is hostile; one of another user cannot map the memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace pullman::shm {

inline constexpr std::size_t kLineBytes = 64;
inline constexpr std::size_t kRecordHeadBytes = 8;

// Returns the bytes of memory for a ring of that capacity, which is a power of two.
constexpr std::size_t ring_bytes(std::size_t capacity) {
  return kLineBytes + capacity;
}

// The bytes of a ring, as both ends see them.
class RingMemory {
 public:
  // `memory` has ring_bytes() of a capacity, begins at a cache line, and outlives this.
  explicit RingMemory(std::span<std::byte> memory);

  std::size_t capacity() const { return mask_ + 1; }
  // The longest record: one of this length has room in an empty ring, wherever the ring is.
  std::size_t max_record() const { return capacity() / 2 - 2 * kRecordHeadBytes; }

  std::atomic_ref<std::uint64_t> read() const { return std::atomic_ref(*read_); }
  std::atomic_ref<std::uint64_t> head(std::uint64_t position) const {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(at(position)));
  }
  std::byte* at(std::uint64_t position) const { return bytes_ + (position & mask_); }
  // Returns the bytes from there to where the ring begins anew.
  std::size_t rest(std::uint64_t position) const { return capacity() - (position & mask_); }

 private:
  std::uint64_t* read_;
  std::byte* bytes_;
  std::size_t mask_;
};

class RingWriter {
 public:
  // The memory is zero, and no reader has begun.
  explicit RingWriter(std::span<std::byte> memory) : memory_(memory) {}

  std::size_t max_record() const { return memory_.max_record(); }
  // Returns the place for a record of that length, at most max_record(), or null while the reader
  // has not made room for it. The place may be written until commit(), or until another is asked
  // for.
  std::byte* reserve(std::size_t length);
  // Lets the reader see the record. What a mark means is between its users.
  void commit(bool marked = false);

  // Returns where the last record ends. Once done() is as much, the reader has read all of it.
  std::uint64_t position() const { return position_; }
  std::uint64_t done() const;

 private:
  bool has_room(std::uint64_t end);

  RingMemory memory_;
  std::uint64_t position_ = 0;  // counts bytes, and goes on where the ring begins anew
  std::uint64_t begin_ = 0;     // of the record that was reserved
  std::uint64_t end_ = 0;
  std::size_t length_ = 0;
  std::uint64_t free_until_ = 0;  // as far as the reader is known to have made room
};

class RingReader {
 public:
  // The memory is zero, or a writer has begun, but no other reader.
  explicit RingReader(std::span<std::byte> memory) : memory_(memory) {}

  // Returns the next record; nothing if there is none yet, or if the ring is corrupt. Valid until
  // pop().
  std::optional<std::span<const std::byte>> front();
  bool is_marked() const { return marked_; }  // the record that front() has returned
  // Makes room of the record that front() has returned.
  void pop();
  // Returns true once a header was found that no writer has written: there will be no more records.
  bool is_corrupt() const { return corrupt_; }

 private:
  RingMemory memory_;
  std::uint64_t position_ = 0;
  std::uint64_t end_ = 0;  // of the record that front() has returned
  bool marked_ = false;
  bool corrupt_ = false;
};

}  // namespace pullman::shm
