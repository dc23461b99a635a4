// A door at which other processes of the same user ask this one: a Unix socket beside the file of
// its counters, whose messages are packets. Nothing here waits: a visitor that does not read loses
// what there is no room for. Does not know what is asked.
//
// Knocker is the other side.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace pullman::telemetry {

// Of the socket's name, behind that of the file of counters.
inline constexpr std::string_view kDoorExtension = ".job";
// What either side may say at once.
inline constexpr std::size_t kMaxDoorBytes = 16384;

// A descriptor that is closed in the end.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_;
};

// Threads: one at a time.
class Door {
 public:
  // Throws shm::MemoryError if there can be none.
  explicit Door(std::filesystem::path path);
  ~Door();
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  // Is readable if next() has something to do.
  int descriptor() const { return watched_.get(); }

  // A visitor's name is never another's.
  using Visitor = std::uint32_t;
  struct Question {
    Visitor visitor = 0;
    std::vector<std::byte> bytes{};
  };
  // Lets visitors in and out, and returns a question if there is one.
  std::optional<Question> next();
  // Returns false if the visitor has left, or does not read.
  bool answer(Visitor visitor, std::span<const std::byte> bytes);

 private:
  static constexpr std::size_t kMaxVisitors = 8;
  struct Seat {
    Descriptor socket;
    Visitor visitor = 0;
  };

  void let_all_in();
  void let_in(Descriptor socket);
  std::optional<Question> hear(Seat& seat);

  std::filesystem::path path_;
  Descriptor listening_;
  Descriptor watched_;  // an epoll set of all
  std::array<Seat, kMaxVisitors> seats_;
  Visitor last_ = 0;
};

// A visitor at the door of another process.
class Knocker {
 public:
  // Throws shm::MemoryError if nobody is there.
  explicit Knocker(const std::filesystem::path& door);

  // Returns false if the other side is gone, or hears nothing.
  bool ask(std::span<const std::byte> bytes);
  // Returns what the other side says, or nothing if that is nothing for so long.
  std::optional<std::vector<std::byte>> hear(std::chrono::milliseconds patience);
  // Returns whether the other side has ended.
  bool is_over() const { return over_; }

 private:
  Descriptor socket_;
  bool over_ = false;
};

// Returns the doors in the folder whose processes live, as far as this process sees them.
std::vector<std::filesystem::path> doors_in(const std::filesystem::path& folder);

}  // namespace pullman::telemetry
