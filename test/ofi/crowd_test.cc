// Many endpoints of one domain, with one address vector and one queue for all.
#include <deque>

#include "pair.h"

namespace pullman::test {
namespace {

constexpr std::size_t kMembers = 5;

class Crowd {
 public:
  Crowd() {
    info_ = find(hints_for(FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE));
    REQUIRE(info_ != nullptr);
    open([&](auto** out) { return fi_fabric(info_->fabric_attr, out, nullptr); }, fabric_);
    open([&](auto** out) { return fi_domain(fabric_.get(), info_.get(), out, nullptr); }, domain_);
    fi_cq_attr queue{};
    queue.format = FI_CQ_FORMAT_TAGGED;
    open([&](auto** out) { return fi_cq_open(domain_.get(), &queue, out, nullptr); }, completions_);
    fi_av_attr addresses{};
    addresses.type = FI_AV_TABLE;
    open([&](auto** out) { return fi_av_open(domain_.get(), &addresses, out, nullptr); }, vector_);
    for (auto& member : members_) {
      open([&](auto** out) { return fi_endpoint(domain_.get(), info_.get(), out, nullptr); },
           member);
      MUST(fi_ep_bind(member.get(), &vector_->fid, 0));
      MUST(fi_ep_bind(member.get(), &completions_->fid, FI_TRANSMIT | FI_RECV));
      MUST(fi_enable(member.get()));
    }
    for (std::size_t i = 0; i < kMembers; ++i) insert(i);
  }

  // `from` sends (from, to) to `to`, which expects it from no other.
  void say(std::size_t from, std::size_t to) {
    Word& word = words_.emplace_back(Word{from * kMembers + to, 0});
    MUST(fi_trecv(members_[to].get(), &word.heard, sizeof word.heard, nullptr, from, 7, 0, &word));
    MUST(fi_tsend(members_[from].get(), &word.said, sizeof word.said, nullptr, to, 7, &word));
    pending_ += 2;
  }

  // Waits until all messages have been received.
  void settle() {
    const std::clock_t end = deadline();
    while (pending_ > 0) {
      fi_cq_tagged_entry entry{};
      const ssize_t read = fi_cq_read(completions_.get(), &entry, 1);
      if (read == 1) --pending_;
      REQUIRE((read == 1 || read == -FI_EAGAIN));
      if (std::clock() > end) throw std::runtime_error("not all came");
    }
    for (const Word& word : words_) CHECK(word.heard == word.said);
  }

  // Closes one member's endpoint.
  void leave(std::size_t who) { members_[who].reset(); }

 private:
  struct Word {
    std::size_t said;
    std::size_t heard;
  };

  template <typename Opener, typename Handle>
  static void open(Opener&& opener, Owned<Handle>& into) {
    Handle* opened = nullptr;
    MUST(opener(&opened));
    into.reset(opened);
  }

  void insert(std::size_t i) {
    std::array<char, 64> name{};
    std::size_t length = name.size();
    MUST(fi_getname(&members_[i]->fid, name.data(), &length));
    fi_addr_t number = FI_ADDR_NOTAVAIL;
    REQUIRE(fi_av_insert(vector_.get(), name.data(), 1, &number, 0, nullptr) == 1);
    REQUIRE(number == i);
  }

  Info info_;
  Owned<fid_fabric> fabric_;
  Owned<fid_domain> domain_;
  Owned<fid_cq> completions_;
  Owned<fid_av> vector_;
  std::array<Owned<fid_ep>, kMembers> members_;
  std::deque<Word> words_;
  std::size_t pending_ = 0;
};

}  // namespace

TEST_CASE("every endpoint receives what every other sent it: mesh, ring, gather, broadcast") {
  Crowd crowd;
  for (std::size_t i = 0; i < kMembers; ++i) {
    for (std::size_t j = 0; j < kMembers; ++j) crowd.say(i, j);
  }
  crowd.settle();
  for (int round = 0; round < 20; ++round) {
    for (std::size_t i = 0; i < kMembers; ++i) crowd.say(i, (i + 1) % kMembers);
  }
  crowd.settle();
  for (std::size_t i = 1; i < kMembers; ++i) {
    crowd.say(i, 0);
    crowd.say(0, i);
  }
  crowd.settle();
}

TEST_CASE("endpoints that share a queue and a vector go on when one of them is closed") {
  Crowd crowd;
  for (std::size_t i = 0; i < kMembers; ++i) crowd.say(i, (i + 1) % kMembers);
  crowd.settle();

  crowd.leave(2);
  for (const std::size_t i : {0, 1, 3, 4}) {
    for (const std::size_t j : {0, 1, 3, 4}) crowd.say(i, j);
  }
  crowd.settle();
}

}  // namespace pullman::test
