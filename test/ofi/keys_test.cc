// The authorization key of an application, which its endpoints' packets are protected with.
#include <rdma/fi_errno.h>

#include "pair.h"

namespace pullman::test {
namespace {

using Key = std::vector<std::uint8_t>;

Key key_of(std::uint8_t each, std::size_t bytes = 16) {
  return Key(bytes, each);
}

void take(std::uint8_t*& to, std::size_t& bytes, const Key& key) {
  if (key.empty()) return;
  to = static_cast<std::uint8_t*>(std::malloc(key.size()));  // fi_freeinfo() frees it
  std::memcpy(to, key.data(), key.size());
  bytes = key.size();
}

// Returns null if the provider does not take the keys.
Info info_with(const Key& of_domain, const Key& of_endpoint) {
  const Info hints = hints_for(Options().caps);
  take(hints->domain_attr->auth_key, hints->domain_attr->auth_key_size, of_domain);
  take(hints->ep_attr->auth_key, hints->ep_attr->auth_key_size, of_endpoint);
  return find(hints);
}

// The keys of one end.
struct Keys {
  Key of_domain;
  Key of_endpoint;
};

// Two ends, each with keys of its own.
class Ends {
 public:
  Ends(const Keys& first, const Keys& second)
      : infos_{info_with(first.of_domain, first.of_endpoint),
               info_with(second.of_domain, second.of_endpoint)} {
    fid_fabric* opened = nullptr;
    MUST(fi_fabric(infos_[0]->fabric_attr, &opened, nullptr));
    fabric_.reset(opened);
    for (const int i : {0, 1}) {
      sides_[i] = std::make_unique<Side>(fabric_.get(), infos_[i].get(), Options());
    }
  }

  // Sends a message of the first end to the second. Returns 0, or the error it ended with.
  int exchange() {
    const auto sent = content(100'000, 1);
    std::vector<char> buffer(sent.size());
    MUST(fi_trecv(sides_[1]->endpoint.get(), buffer.data(), buffer.size(), nullptr, FI_ADDR_UNSPEC,
                  7, 0, &op_contexts[0]));
    MUST(fi_tsend(sides_[0]->endpoint.get(), sent.data(), sent.size(), nullptr,
                  sides_[0]->insert(sides_[1]->name()), 7, &op_contexts[1]));
    Said said, ignored;
    for (const std::clock_t end = deadline(); !sides_[0]->look(said);) {
      sides_[1]->look(ignored);
      if (std::clock() > end) throw std::runtime_error("nothing came");
    }
    if (said.error) return said.entry.err;
    CHECK(buffer == sent);
    return 0;
  }

 private:
  std::array<Info, 2> infos_;
  Owned<fid_fabric> fabric_;
  std::array<std::unique_ptr<Side>, 2> sides_;
};

// An end of another job is silent, which is to be noticed soon.
struct Impatient {
  Impatient() { setenv("FI_PULLMAN_PEER_TIMEOUT", "1", 1); }
  ~Impatient() { unsetenv("FI_PULLMAN_PEER_TIMEOUT"); }
};

}  // namespace

TEST_CASE("fi_info has the keys that were asked with") {
  const Info info = info_with(key_of(1, 16), key_of(2, 40));
  REQUIRE(info != nullptr);
  const fi_domain_attr& domain = *info->domain_attr;
  const fi_ep_attr& endpoint = *info->ep_attr;
  CHECK(Key(domain.auth_key, domain.auth_key + domain.auth_key_size) == key_of(1, 16));
  CHECK(Key(endpoint.auth_key, endpoint.auth_key + endpoint.auth_key_size) == key_of(2, 40));
}

TEST_CASE("a key that is too short, too long, or not there is refused") {
  CHECK(info_with(key_of(1, 15), {}) == nullptr);
  CHECK(info_with({}, key_of(1, 15)) == nullptr);
  CHECK(info_with(key_of(1, 4097), {}) == nullptr);
  const Info hints = hints_for(FI_TAGGED);
  hints->domain_attr->auth_key_size = 16;
  CHECK(find(hints) == nullptr);
}

TEST_CASE("a key that others know is refused when the domain is opened") {
  setenv("OMPI_MCA_orte_precondition_transports", "0123456789abcdef-fedcba9876543210", 1);
  const Key numbers{0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01,
                    0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe};
  for (const Key& key : {numbers, key_of(0)}) {
    const Info info = info_with(key, {});
    fid_fabric* fabric = nullptr;
    MUST(fi_fabric(info->fabric_attr, &fabric, nullptr));
    const Owned<fid_fabric> owned(fabric);
    fid_domain* domain = nullptr;
    CHECK(fi_domain(fabric, info.get(), &domain, nullptr) == -FI_EINVAL);
  }
  unsetenv("OMPI_MCA_orte_precondition_transports");
}

TEST_CASE("endpoints that have a key in common exchange messages, whose ever it is") {
  CHECK(Ends({key_of(1), {}}, {key_of(1), {}}).exchange() == 0);
  CHECK(Ends({key_of(1), {}}, {{}, key_of(1)}).exchange() == 0);
  // That of the endpoint comes first.
  CHECK(Ends({key_of(1), key_of(3)}, {key_of(2), key_of(3)}).exchange() == 0);
}

TEST_CASE("endpoints that have different keys, or one of them none, do not meet") {
  const Impatient impatient;
  CHECK(Ends({key_of(1), {}}, {key_of(2), {}}).exchange() == FI_EHOSTUNREACH);
  CHECK(Ends({key_of(1), {}}, {}).exchange() == FI_EHOSTUNREACH);
}

}  // namespace pullman::test
