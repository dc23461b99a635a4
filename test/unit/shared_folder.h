// A folder in /dev/shm of a test's own, so that segments of other programs are left alone; it is
// removed with all that is in it.
#pragma once

#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

namespace pullman::shm {

class SharedFolder {
 public:
  SharedFolder() {
    std::array name = std::to_array("/dev/shm/pullman-test-XXXXXX");
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name.data();
  }
  ~SharedFolder() { std::filesystem::remove_all(path_); }
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace pullman::shm
