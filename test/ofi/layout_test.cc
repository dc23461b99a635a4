// Tags as Open MPI lays them out in each of its modes: communicator, source, protocol and tag in 64
// bits, or the source beside them as immediate data; compared with the simplest matcher.
#include <algorithm>
#include <optional>
#include <random>

#include "pair.h"

namespace pullman::test {
namespace {

struct Layout {
  const char* name;
  int source_bits;  // 0: the source is immediate data
  int protocol_bit;
  int tag_bits;
  std::size_t data;  // bytes of immediate data asked for
};
constexpr Layout kLayouts[] = {
    {"ofi_tag_1", 18, 32, 32, 0}, {"ofi_tag_2", 18, 20, 20, 0}, {"ofi_tag_full", 0, 32, 32, 4}};

std::uint64_t ones(int bits) {
  return (std::uint64_t{1} << bits) - 1;
}

struct Sent {
  std::uint64_t bits;
  std::uint64_t source;
};

struct Wanted {
  std::uint64_t bits;
  std::uint64_t ignored;

  bool takes(const Sent& sent) const { return ((sent.bits ^ bits) & ~ignored) == 0; }
};

class Draw {
 public:
  Draw(const Layout& layout, unsigned seed) : layout_(layout), random_(seed) {}

  Sent sent() {
    const std::uint64_t source = one_of({0, 1, ones(18)});
    const std::uint64_t tag = one_of({0, 1, ones(layout_.tag_bits - 1)});
    return {above() | place(source) | protocol(one_of({0, 1})) | tag, source};
  }
  // Matches one source or all; a message may be synchronous or not.
  Wanted wanted() {
    const Sent like = sent();
    std::uint64_t ignored = protocol(1);
    if (one_of({0, 1}) != 0) ignored |= ones(layout_.tag_bits - 1);
    if (layout_.source_bits != 0 && one_of({0, 1}) != 0) ignored |= place(ones(18));
    return {like.bits & ~ignored, ignored};
  }

 private:
  std::uint64_t one_of(std::initializer_list<std::uint64_t> values) {
    return values.begin()[random_() % values.size()];
  }
  std::uint64_t protocol(std::uint64_t value) const { return value << layout_.protocol_bit; }
  std::uint64_t place(std::uint64_t source) const {
    return layout_.source_bits == 0 ? 0 : source << (layout_.protocol_bit + 2);
  }
  std::uint64_t above() {
    const int at = layout_.protocol_bit + 2 + layout_.source_bits;
    return one_of({0, 1, ones(64 - at)}) << at;
  }

  const Layout& layout_;
  std::mt19937 random_;
};

constexpr int kMessages = 60;

struct Kept {
  std::array<Sent, kMessages> sent;
  std::array<std::uint32_t, kMessages> bytes;
};

void send(const Pair& pair, Kept& kept, int number, bool with_data) {
  const Sent& one = kept.sent[number];
  std::uint32_t& bytes = kept.bytes[number] = static_cast<std::uint32_t>(number);
  if (with_data) {
    MUST(fi_tsenddata(pair.a->endpoint.get(), &bytes, sizeof bytes, nullptr, one.source, pair.to_b,
                      one.bits, nullptr));
  } else {
    MUST(fi_tsend(pair.a->endpoint.get(), &bytes, sizeof bytes, nullptr, pair.to_b, one.bits,
                  nullptr));
  }
}

void is_message(const Said& said, std::uint32_t got, const Kept& kept, std::uint32_t number,
                bool with_data) {
  REQUIRE_FALSE(said.error);
  REQUIRE(got == number);
  CHECK(said.entry.tag == kept.sent[number].bits);
  CHECK(((said.entry.flags & FI_REMOTE_CQ_DATA) != 0) == with_data);
  if (with_data) CHECK(said.entry.data == kept.sent[number].source);
}

}  // namespace

TEST_CASE("the tag modes of Open MPI are offered, and unsupported hints are refused") {
  for (const Layout& layout : kLayouts) {
    CAPTURE(layout.name);
    Info hints = hints_for(FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV);
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
    hints->tx_attr->op_flags = hints->rx_attr->op_flags = FI_COMPLETION;
    hints->domain_attr->cq_data_size = layout.data;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    hints->domain_attr->av_type = FI_AV_MAP;

    const Info info = find(hints);
    REQUIRE(info != nullptr);
    CHECK(info->domain_attr->cq_data_size == 8);
    CHECK((info->caps & hints->caps) == hints->caps);
    CHECK((info->rx_attr->caps & FI_DIRECTED_RECV) != 0);
    CHECK((info->ep_attr->mem_tag_format & (std::uint64_t{1} << 63)) !=
          0);  // the application may use all bits
    CHECK(info->mode == 0);

    hints->domain_attr->cq_data_size = 9;
    CHECK(find(hints) == nullptr);
    hints->domain_attr->cq_data_size = layout.data;
    hints->caps &= ~FI_DIRECTED_RECV;
    const Info undirected = find(hints);
    REQUIRE(undirected != nullptr);
    CHECK((undirected->caps & FI_DIRECTED_RECV) == 0);
    CHECK((undirected->rx_attr->caps & FI_DIRECTED_RECV) == 0);
  }
}

TEST_CASE(
    "an endpoint without FI_DIRECTED_RECV receives from every source, even if a call names one") {
  Pair pair({.caps = FI_TAGGED | FI_SOURCE});
  const auto sent = content(100, 1);
  std::vector<char> buffer(100);
  const fi_addr_t itself = pair.b->insert(pair.b->name());
  MUST(fi_trecv(pair.b->endpoint.get(), buffer.data(), 100, nullptr, itself, 7, 0, nullptr));
  MUST(fi_tsend(pair.a->endpoint.get(), sent.data(), 100, nullptr, pair.to_b, 7, nullptr));

  CHECK(pair.next(*pair.b).source == pair.to_a);
  CHECK(buffer == sent);
}

TEST_CASE("in each layout unexpected messages match the receives that a plain matcher finds") {
  const Layout layout = GENERATE(from_range(std::begin(kLayouts), std::end(kLayouts)));
  const unsigned seed = GENERATE(range(1u, 6u));
  CAPTURE(layout.name, seed);
  const bool with_data = layout.data != 0;
  Draw draw(layout, seed);
  Kept kept;
  Pair pair;
  std::vector<std::uint32_t> here;
  for (int i = 0; i < kMessages; ++i) {
    kept.sent[i] = draw.sent();
    send(pair, kept, i, with_data);
    here.push_back(static_cast<std::uint32_t>(i));
  }
  // Messages arrive in order: with the last one all are there.
  const Sent last{0x5555, 0};
  std::uint32_t end = 0, got = 0;
  MUST(fi_tsend(pair.a->endpoint.get(), &end, sizeof end, nullptr, pair.to_b, last.bits, nullptr));
  MUST(fi_trecv(pair.b->endpoint.get(), &got, sizeof got, nullptr, pair.to_a, last.bits, 0,
                nullptr));
  REQUIRE(pair.next(*pair.b).entry.tag == last.bits);

  for (int i = 0; i < 4 * kMessages; ++i) {
    const Wanted wanted = draw.wanted();
    const auto found = std::find_if(
        here.begin(), here.end(), [&](std::uint32_t one) { return wanted.takes(kept.sent[one]); });
    fi_msg_tagged look{};
    look.addr = pair.to_a;
    look.tag = wanted.bits;
    look.ignore = wanted.ignored;
    MUST(fi_trecvmsg(pair.b->endpoint.get(), &look, FI_PEEK));
    const Said seen = pair.next(*pair.b);
    REQUIRE((seen.entry.err == FI_ENOMSG) == (found == here.end()));
    if (found == here.end()) continue;
    CHECK(seen.entry.tag == kept.sent[*found].bits);
    MUST(fi_trecv(pair.b->endpoint.get(), &got, sizeof got, nullptr, pair.to_a, wanted.bits,
                  wanted.ignored, nullptr));
    is_message(pair.next(*pair.b), got, kept, *found, with_data);
    here.erase(found);
  }
  CHECK(here.size() < kMessages / 2);
}

TEST_CASE("in each layout expected messages match the receives that a plain matcher finds") {
  const Layout layout = GENERATE(from_range(std::begin(kLayouts), std::end(kLayouts)));
  const unsigned seed = GENERATE(range(1u, 6u));
  CAPTURE(layout.name, seed);
  const bool with_data = layout.data != 0;
  Draw draw(layout, seed);
  Kept kept;
  std::array<std::uint32_t, kMessages> buffers{};
  Pair pair;
  std::vector<std::optional<Wanted>> posted;
  for (std::uint32_t& buffer : buffers) {
    const Wanted& wanted = *posted.emplace_back(draw.wanted());
    MUST(fi_trecv(pair.b->endpoint.get(), &buffer, sizeof buffer, nullptr, pair.to_a, wanted.bits,
                  wanted.ignored, &buffer));
  }

  int matched = 0;
  for (int i = 0; i < kMessages; ++i) {
    kept.sent[i] = draw.sent();
    send(pair, kept, i, with_data);
    const auto found = std::find_if(posted.begin(), posted.end(), [&](const auto& one) {
      return one && one->takes(kept.sent[i]);
    });
    if (found == posted.end()) continue;
    const Said said = pair.next(*pair.b);
    const std::uint32_t& buffer = buffers[found - posted.begin()];
    CHECK(said.entry.op_context == &buffer);
    is_message(said, buffer, kept, i, with_data);
    found->reset();
    ++matched;
  }
  CHECK(matched > kMessages / 3);
}

}  // namespace pullman::test
