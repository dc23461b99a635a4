// Where a job's key comes from, and what is no key.
#include "context/job_keys.h"

#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <span>
#include <string>

#include "complaint.h"
#include "pullman/status.h"
#include "shared_folder.h"

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

TEST_CASE("what a context keeps of its options has no key") {
  Config config;
  config.pass_phrase = "correct horse battery staple";
  config.keys.emplace_back().fill(std::byte{0x33});

  const Config kept = without_keys(config);

  CHECK(kept.keys.empty());
  CHECK(kept.pass_phrase.empty());
  CHECK(kept.security == Config::Security::kAuthenticate);
  CHECK(config.keys.size() == 1);
  CHECK(without_keys(Config{}).security == Config::Security::kOff);
  config.security = Config::Security::kEncrypt;
  CHECK(without_keys(config).security == Config::Security::kEncrypt);
}

}  // namespace pullman
