// Whether a context may start, and how it protects its packets.
#include "context/security.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "complaint.h"
#include "variable.h"

namespace pullman {
namespace {

using Security = Config::Security;

// No launcher has started this process.
struct NoLauncher {
  Variable pmix{"PMIX_NAMESPACE"};
  Variable pmi2{"PMI_FD"};
};

Config with_key() {
  Config config;
  config.keys.emplace_back().fill(std::byte{0x33});
  return config;
}

std::string complaint_at_start(const Config& config) {
  const NoLauncher none;
  return complaint_of([&] { secure(config); });
}

Config on(const std::vector<std::string>& nics) {
  Config config;
  config.nics = nics;
  return config;
}

}  // namespace

TEST_CASE(
    "without a key a context that other hosts may reach does not start, and says what to do") {
  const std::string said = complaint_at_start(Config{});
  for (const char* const way :
       {"pullman-key FILE", "PULLMAN_KEY_FILE", "PULLMAN_KEY=", "mpirun", "PULLMAN_SECURITY=off"}) {
    CAPTURE(way);
    CHECK(said.find(way) != std::string::npos);
  }
}

TEST_CASE("without a key a context starts on the loopback alone, and leaves packets as they are") {
  const NoLauncher none;
  for (const char* const nic : {"lo", "127.0.0.1"}) {
    CAPTURE(nic);
    const Secured secured = secure(on({nic}));
    CHECK(secured.config.security == Security::kOff);
    CHECK(secured.keys.empty());
  }
}

TEST_CASE("a context that starts on the loopback alone uses no address that it may have later") {
  const NoLauncher none;
  for (const std::string& nic : secure(on({"lo"})).config.nics) {
    CHECK((nic.starts_with("127.") || nic == "::1"));
  }
}

TEST_CASE("what may become more than the loopback needs a key") {
  for (const auto& nics : std::vector<std::vector<std::string>>{
           {"!eth0"}, {"lo", "nosuchnic0"}, {"0.0.0.0/0"}, {"127.0.0.0/8"}, {"nosuchnic0"}}) {
    CAPTURE(nics.front());
    CHECK(complaint_at_start(on(nics)).find("PULLMAN_KEY_FILE") != std::string::npos);
  }
}

TEST_CASE("who wants packets protected needs a key, on the loopback, too") {
  for (const Security wanted : {Security::kAuthenticate, Security::kEncrypt}) {
    Config config = on({"lo"});
    config.security = wanted;
    CHECK(complaint_at_start(config).find("PULLMAN_KEY_FILE") != std::string::npos);
  }
}

TEST_CASE("off needs no key, and looks for none") {
  Config config;
  config.security = Security::kOff;
  config.key_file = "/nowhere/key";
  const Secured secured = secure(config);
  CHECK(secured.config.security == Security::kOff);
  CHECK(secured.keys.empty());
}

TEST_CASE("with a key packets are authenticated, unless they are to be encrypted") {
  CHECK(secure(with_key()).config.security == Security::kAuthenticate);
  Config config = with_key();
  config.security = Security::kEncrypt;
  CHECK(secure(config).config.security == Security::kEncrypt);
}

TEST_CASE("what a context keeps of its options has no key") {
  Config config = with_key();
  config.pass_phrase = "correct horse battery staple";

  const Secured secured = secure(config);

  CHECK(secured.config.keys.empty());
  CHECK(secured.config.pass_phrase.empty());
  CHECK(secured.keys.size() == 1);
  CHECK(config.keys.size() == 1);
}

TEST_CASE("with a seed packets cannot be protected") {
  Config config = with_key();
  config.seed = 1;
  CHECK(complaint_at_start(config).find("with a seed") != std::string::npos);
  config.security = Security::kOff;
  CHECK(complaint_at_start(config).empty());
}

TEST_CASE("packets that are protected have room for their tag") {
  Config config = with_key();
  config.packet_bytes = 591;
  CHECK(complaint_at_start(config).find("592 to 65507") != std::string::npos);
  config.packet_bytes = 592;
  CHECK(complaint_at_start(config).empty());
  config.packet_bytes = 576;
  config.security = Security::kOff;
  CHECK(complaint_at_start(config).empty());
}

}  // namespace pullman
