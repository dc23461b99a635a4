// Inbox: frames to the peer. GRANT and RESULT are about one message, ALLOWANCE about memory, and
// BYE, the last one, tells which messages have arrived.
#include <array>

#include "message/rx/inbox.h"

namespace pullman::message {
namespace {

wire::Result result_of(const InMessage& message) {
  return message.refused ? wire::Result::kRefusedAccess : wire::Result::kDone;
}

}  // namespace

std::size_t Inbox::write_frames(std::byte* out, std::size_t room) {
  std::size_t used = 0;
  while (active_ != nullptr && active_->first_due() != nullptr &&
         room - used >= wire::kGrantBytes) {
    InMessage& message = *active_->first_due();
    active_->remove_first_due();
    if (message.state == InState::kOver && message.wants_result) {
      used += wire::put_result(out + used, message.id, result_of(message));
    } else {
      used += wire::put_grant(out + used, message.id, message.wanted);
    }
    if (message.state == InState::kOver) destroy(message);
  }
  while (active_ != nullptr && active_->first_short_due() != nullptr &&
         room - used >= wire::kResultBytes) {
    ShortMessage& message = *active_->first_short_due();
    used += wire::put_result(out + used, message.id, wire::Result::kDone);
    destroy(message);
  }
  if (allowance_.is_update_due() && room - used >= wire::kAllowanceBytes) {
    const AllowanceGranted::Limits limits = allowance_.advertise();
    used += wire::put_allowance(out + used, limits.limit, limits.whole_limit);
  }
  return used;
}

// Excepts the oldest messages that have begun and lack something, each by its id, and tells beyond
// the floor as many ids as there is room for.
std::size_t Inbox::write_bye(std::byte* out) const {
  std::array<std::uint32_t, wire::kMaxByeExcepted> excepted;
  std::size_t lacking = 0;
  MessageId missing = ids_.floor();
  if (active_ != nullptr) {
    std::as_const(*active_).for_each_incomplete([&](const InMessage& message) {
      if (message.id >= missing) return false;
      if (has_all(message)) return true;
      if (lacking == excepted.size()) {
        missing = message.id;
        return false;
      }
      excepted[lacking++] = low32(message.id);
      return true;
    });
  }
  std::array<std::uint64_t, wire::kMaxByeData / 8> words{};
  std::size_t count = 0;
  const std::size_t room = (wire::kMaxByeData - 4 * lacking) / 8;
  for (std::size_t at = 0; at < 64 * room; ++at) {
    if (!has_all_of(missing + 1 + at)) continue;
    words[at / 64] |= std::uint64_t{1} << at % 64;
    count = at / 64 + 1;
  }
  return wire::put_bye(out, missing, std::span(excepted).first(lacking),
                       std::span(words).first(count));
}

void Inbox::withdraw_lacking() {
  if (active_ == nullptr) return;
  active_->for_each_incomplete([this](InMessage& message) {
    if (message.state == InState::kUnexpected && !has_all(message)) claim(message);
    return true;
  });
}

bool Inbox::is_news(const wire::Frame& frame) const {
  return !has_all_of(expand(frame.id, next_turn_));
}

// Whether everything that its sender will send has arrived.
bool Inbox::has_all(const InMessage& message) const {
  const bool asked_for_all =
      message.state == InState::kFilling || message.total <= unasked_bytes(message);
  return message.complete() && asked_for_all;
}

bool Inbox::has_all_of(MessageId id) const {
  if (!ids_.finished(id)) return false;
  if (active_ == nullptr) return true;
  const InMessage* begun = std::as_const(*active_).peek(id);
  return begun == nullptr || has_all(*begun);
}

}  // namespace pullman::message
