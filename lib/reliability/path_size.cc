#include "reliability/path_size.h"

#include <algorithm>

#include "base/check.h"

namespace pullman::reliability {
namespace {

// The search ends when it is accurate to one kPrecision-th, 1.6 % of a packet, which takes four to
// six sizes from 1200 to 9000.
constexpr std::size_t kPrecision = 64;

}  // namespace

void PathSize::start(std::size_t most) {
  PULLMAN_CHECK(most >= kLeast && most <= 0xFFFF);
  bytes_ = most_ = static_cast<std::uint16_t>(most);
}

// Returns the size to fall to.
std::size_t PathSize::next_below() const {
  return suspect_ > kBase ? kBase : kLeast;
}

// The loss of a packet longer than the current size says nothing new.
void PathSize::handle_lost(PacketNumber number, std::size_t bytes, PacketNumber next) {
  if (bytes > bytes_ || bytes <= kLeast) return;
  if (trouble_ == nullptr) trouble_ = std::make_unique<Trouble>();
  suspect_ =
      static_cast<std::uint16_t>(watching() ? std::max<std::size_t>(suspect_, bytes) : bytes);
  if (watching() && number < trouble_->round_end) return;
  trouble_->round_end = next;
  news_ = true;
  if (++rounds_ < kRounds) return;
  hinted_ = 0;
  fall(next_below());
}

void PathSize::handle_hint(Instant now, std::size_t bytes) {
  if (!watching() || bytes >= suspect_ || now < trouble_->distrust_until) return;
  const std::size_t believed = std::max(bytes, next_below());
  hinted_ = static_cast<std::uint16_t>(believed);
  fall(believed);
}

void PathSize::fall(std::size_t to) {
  bad_ = suspect_;
  bytes_ = static_cast<std::uint16_t>(to);
  rounds_ = tries_ = 0;
  searching_ = bad_first_ = news_ = true;
  trouble_->retry_in = kFirstRetry;
}

std::size_t PathSize::target() const {
  return bad_first_ ? bad_ : bytes_ + (bad_ - bytes_) / 2;
}

std::size_t PathSize::begin_probe() {
  if (!searching_) {
    searching_ = bad_first_ = true;
    bad_ = most_;
    tries_ = 0;
    hinted_ = 0;
  }
  probing_ = true;
  return target();
}

void PathSize::handle_probe_acked(Instant now, std::size_t bytes) {
  probing_ = false;
  if (bytes <= bytes_) return;
  if (hinted_ != 0 && bytes > hinted_) trouble_->distrust_until = now + kDistrust;
  bytes_ = static_cast<std::uint16_t>(bytes);
  rounds_ = tries_ = 0;
  news_ = true;
  if (bytes_ >= bad_) {
    bad_ = most_;
    bad_first_ = true;
  }
  look_on(now);
}

void PathSize::handle_probe_lost(Instant now, std::size_t bytes) {
  probing_ = false;
  if (!searching_ || bytes != target() || ++tries_ < kTries) return;
  tries_ = 0;
  bad_ = static_cast<std::uint16_t>(bytes);
  const bool as_hinted = bad_first_ && hinted_ != 0;
  bad_first_ = false;
  as_hinted ? settle(now) : look_on(now);
}

// Ends the search if it has found the size.
void PathSize::look_on(Instant now) {
  if (bytes_ == most_) {
    searching_ = false;
  } else if (!bad_first_ && bad_ - bytes_ <= static_cast<int>(bytes_ / kPrecision)) {
    settle(now);
  }
}

void PathSize::settle(Instant now) {
  searching_ = false;
  trouble_->retry_at = now + trouble_->retry_in;
  trouble_->retry_in = std::min(trouble_->retry_in * 2, kLastRetry);
}

}  // namespace pullman::reliability
