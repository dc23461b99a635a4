#include "world/question.h"

#include <algorithm>

#include "world/fields.h"
#include "world/summary.h"

namespace pullman::world {
namespace {

constexpr std::uint8_t kQuestionVersion = 1;

}  // namespace

Bytes encode(const Question& question) {
  FieldWriter out;
  out.byte(kQuestionVersion);
  out.long_number(question.number);
  out.number(question.rank);
  out.number(question.asked.size());
  out.bytes(question.asked.bytes());
  return out.take();
}

// The bits behind the last rank are nobody's, and may be anything.
std::optional<Question> decode_question(std::span<const std::byte> bytes) {
  FieldReader in(bytes);
  const std::uint8_t version = in.byte();
  Question out;
  out.number = in.long_number();
  out.rank = in.number();
  const std::uint32_t size = in.number();
  if (in.failed() || version != kQuestionVersion || size > kMaxAskedSize) return std::nullopt;
  out.asked = RankSet(size);
  const auto bits = in.rest();
  if (bits.size() != out.asked.bytes().size()) return std::nullopt;
  std::copy(bits.begin(), bits.end(), out.asked.bytes().begin());
  return out;
}

Bytes encode(const Answer& answer) {
  FieldWriter out;
  out.byte(kQuestionVersion);
  out.long_number(answer.number);
  out.number(answer.rank);
  out.bytes(answer.summary);
  return out.take();
}

std::optional<Answer> decode_answer(std::span<const std::byte> bytes) {
  FieldReader in(bytes);
  const std::uint8_t version = in.byte();
  Answer out;
  out.number = in.long_number();
  out.rank = in.number();
  const auto summary = in.rest();
  if (in.failed() || version != kQuestionVersion || summary.size() > kMaxSummaryBytes) {
    return std::nullopt;
  }
  out.summary.assign(summary.begin(), summary.end());
  return out;
}

}  // namespace pullman::world
