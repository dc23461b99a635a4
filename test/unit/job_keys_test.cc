// Where a job's key comes from, and what is no key.
#include "context/job_keys.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <span>
#include <string>
#include <thread>

#include "complaint.h"
#include "pullman/status.h"
#include "shared_folder.h"
#include "variable.h"

namespace pullman {
namespace {

const std::string kOne(64, '1');
const std::string kTwo(64, '2');

crypto::Secret<32> key_of(std::byte each) {
  crypto::Secret<32> key;
  for (std::byte& byte : key.bytes()) byte = each;
  return key;
}

// A key file in a folder of its own, which goes with it.
class KeyFile {
 public:
  explicit KeyFile(const std::string& text, mode_t mode = 0600) {
    std::ofstream(path()) << text;
    chmod(path().c_str(), mode);
  }
  std::string path() const { return folder_.path() / "key"; }

 private:
  shm::SharedFolder folder_;
};

Config with_file(const KeyFile& file) {
  Config config;
  config.key_file = file.path();
  return config;
}

std::string complaint(const Config& config) {
  return complaint_of([&] { find_job_keys(config); });
}

}  // namespace

TEST_CASE("without a key there is none") {
  CHECK(find_job_keys(Config{}).keys.empty());
}

TEST_CASE("a file has a key in each line, the newest first") {
  const KeyFile file(kOne + "\n" + kTwo + "\n");

  const JobKeys found = find_job_keys(with_file(file));

  REQUIRE(found.keys.size() == 2);
  CHECK(found.keys[0] == key_of(std::byte{0x11}));
  CHECK(found.keys[1] == key_of(std::byte{0x22}));
  CHECK(found.source == "the file '" + file.path() + "'");
}

TEST_CASE("hexadecimal digits may be of either case, and the last line may lack its end") {
  std::string digits(64, 'a');
  digits.replace(0, 32, std::string(32, 'A'));
  CHECK(find_job_keys(with_file(KeyFile(digits))).keys.at(0) == key_of(std::byte{0xAA}));
}

TEST_CASE("a key file that others may read or write is refused") {
  for (const mode_t mode : {0640, 0604, 0620, 0602, 0644, 0777}) {
    const KeyFile file(kOne, mode);
    CAPTURE(mode);
    CHECK(complaint(with_file(file)) == "others may read or write the key file '" + file.path() +
                                            "': 'chmod 600 " + file.path() + "'");
  }
  CHECK(complaint(with_file(KeyFile(kOne, 0400))).empty());
}

TEST_CASE("a key file that is none is refused, and no digit of it is told") {
  const std::string bad[] = {"",
                             "\n",
                             kOne + "1",
                             kOne.substr(1),
                             "g" + kOne.substr(1),
                             kOne + "\n\n",
                             kOne + "\nsecret",
                             kOne + "\n" + kOne + "\n" + kOne + "\n" + kOne + "\n" + kOne + "\n"};
  for (const std::string& text : bad) {
    CAPTURE(text);
    const std::string said = complaint(with_file(KeyFile(text)));
    CHECK(said.find("key file") != std::string::npos);
    CHECK(said.find("111") == std::string::npos);
    CHECK(said.find("secret") == std::string::npos);
  }
}

TEST_CASE("a key file that is missing, or a folder, is refused with what to do") {
  Config config;
  config.key_file = "/nowhere/key";
  CHECK(complaint(config).find("'pullman-key /nowhere/key' makes one") != std::string::npos);
  config.key_file = "/tmp";
  CHECK(complaint(config) == "the key file '/tmp' is not a file");
}

TEST_CASE("the program's key comes before a file's, and a file's before words") {
  const KeyFile file(kTwo);
  Config config = with_file(file);
  config.pass_phrase = "correct horse battery staple";
  CHECK(find_job_keys(config).keys.at(0) == key_of(std::byte{0x22}));

  config.keys.emplace_back().fill(std::byte{0x33});
  const JobKeys found = find_job_keys(config);

  REQUIRE(found.keys.size() == 1);
  CHECK(found.keys[0] == key_of(std::byte{0x33}));
  CHECK(found.source == "the program");
}

TEST_CASE("words make the same key everywhere, and too few are refused") {
  Config config;
  config.pass_phrase = "correct horse battery staple";
  // scrypt with n = 32768, r = 8, p = 1 and the salt "pullman pass phrase 1", by Python's hashlib.
  constexpr unsigned char kExpected[] = {0x49, 0x48, 0xd4, 0x48, 0x15, 0x8b, 0x03, 0x9d,
                                         0x54, 0x2f, 0x09, 0x28, 0x6c, 0x5c, 0xc6, 0xde,
                                         0x43, 0xf6, 0x26, 0x8e, 0x8f, 0x62, 0xa7, 0xed,
                                         0x22, 0x12, 0xaa, 0x5b, 0x75, 0xd3, 0xeb, 0x90};

  const JobKeys found = find_job_keys(config);

  REQUIRE(found.keys.size() == 1);
  CHECK(std::ranges::equal(found.keys[0].bytes(), std::as_bytes(std::span(kExpected))));
  config.pass_phrase = "1234567";
  CHECK(complaint(config).find("1234567") == std::string::npos);
  CHECK(complaint(config).find("at least 8 characters") != std::string::npos);
}

TEST_CASE("no key is looked for where packets are not to be protected") {
  Config config;
  config.key_file = "/nowhere/key";
  config.security = Config::Security::kOff;
  CHECK(find_job_keys(config).keys.empty());
}

TEST_CASE("words and keys that the launcher tells every process are refused") {
  const Variable told("OMPI_MCA_orte_precondition_transports", "0123456789abcdef-fedcba9876543210");
  Config config;
  config.pass_phrase = "0123456789abcdef-fedcba9876543210";
  CHECK(complaint(config).find("can be guessed") != std::string::npos);
  Config::Key& key = config.keys.emplace_back();
  key.fill(std::byte{0});
  constexpr unsigned char kNumbers[] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
                                        0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32, 0x10};
  std::ranges::copy(std::as_bytes(std::span(kNumbers)), key.begin());
  CHECK(complaint(config).find("can be guessed") != std::string::npos);
  key.front() = std::byte{0xFF};
  CHECK(complaint(config).empty());
}

TEST_CASE("a key of zeros is refused, wherever it comes from") {
  Config config;
  config.keys.emplace_back().fill(std::byte{0});
  CHECK(complaint(config).find("zeros") != std::string::npos);
  CHECK(complaint(with_file(KeyFile(std::string(64, '0')))).find("zeros") != std::string::npos);
}

TEST_CASE("a file that loses its name is no descriptor that was inherited") {
  const int file = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0644);
  REQUIRE(write(file, kOne.data(), kOne.size()) == static_cast<ssize_t>(kOne.size()));
  const std::string place = std::to_string(file);
  Config config;
  config.key_file = "/dev/fd/" + place;
  CHECK(complaint(config).empty());
  // The same file by a path that others might have made.
  config.key_file = "/proc/" + std::to_string(getpid()) + "/fd/" + place;
  CHECK(complaint(config).find("'chmod 600") != std::string::npos);
  close(file);
}

// What a process inherits as a descriptor, and closes.
class Inherited {
 public:
  explicit Inherited(int descriptor) : descriptor_(descriptor) {}
  ~Inherited() { close(descriptor_); }
  std::string path() const { return "/dev/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

Config with_path(const std::string& path) {
  Config config;
  config.key_file = path;
  return config;
}

TEST_CASE("a descriptor that was inherited may be a file without a name, which can be read again") {
  const int file = memfd_create("key", MFD_CLOEXEC);
  REQUIRE(write(file, kOne.data(), kOne.size()) == static_cast<ssize_t>(kOne.size()));
  const Inherited inherited(file);
  for (int i = 0; i < 2; ++i) {
    CHECK(find_job_keys(with_path(inherited.path())).keys.at(0) == key_of(std::byte{0x11}));
  }
}

TEST_CASE("a descriptor that was inherited may be a pipe, which can be read once") {
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  const Inherited inherited(ends[0]);
  std::thread writer([end = ends[1]] {
    usleep(20'000);  // so the reader has to wait
    CHECK(write(end, kOne.data(), kOne.size()) == static_cast<ssize_t>(kOne.size()));
    close(end);
  });
  CHECK(find_job_keys(with_path(inherited.path())).keys.at(0) == key_of(std::byte{0x11}));
  writer.join();
  CHECK(complaint(with_path(inherited.path())).find("a pipe can be read only once") !=
        std::string::npos);
}

TEST_CASE("a pipe with a name that others may write to is refused") {
  const shm::SharedFolder folder;
  const std::string path = folder.path() / "pipe";
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  chmod(path.c_str(), 0622);
  CHECK(complaint(with_path(path)).find("'chmod 600") != std::string::npos);
}

}  // namespace pullman
