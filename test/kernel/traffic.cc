#include "traffic.h"

#include <algorithm>
#include <map>

namespace soak {

namespace {

constexpr std::size_t kSendSlots = 32;
constexpr std::size_t kReceiveSlots = 16;

bool takes_anything(std::size_t slot) {
  return slot % 2 == 0;
}

}  // namespace

Sender::Sender(pullman::Context& context, pullman::PeerId peer, std::vector<Message> plan)
    : context_(context),
      peer_(peer),
      plan_(std::move(plan)),
      slots_(std::make_unique<Slot[]>(kSendSlots)) {}

void Sender::pump() {
  for (std::size_t i = 0; i < kSendSlots && !all_sent(); ++i) {
    Slot& slot = slots_[i];
    if (!slot.request.done()) continue;
    if (slot.request.status() != pullman::Status::kOk) return;  // see status()
    const Message& message = plan_[next_++];
    slot.buffer.resize(message.size);
    write_contents(message, slot.buffer);
    context_.send(peer_, message.tag, slot.buffer, slot.request);
  }
}

bool Sender::finished() const {
  const bool idle = std::all_of(slots_.get(), slots_.get() + kSendSlots,
                                [](const Slot& slot) { return slot.request.done(); });
  return idle && (all_sent() || status() != pullman::Status::kOk);
}

pullman::Status Sender::status() const {
  for (std::size_t i = 0; i < kSendSlots; ++i) {
    const pullman::Request& request = slots_[i].request;
    if (request.done() && request.status() != pullman::Status::kOk) return request.status();
  }
  return pullman::Status::kOk;
}

Receiver::Receiver(pullman::Context& context, pullman::PeerId peer, std::uint64_t seed,
                   std::vector<Message> plan, std::size_t largest)
    : context_(context),
      peer_(peer),
      seed_(seed),
      plan_(std::move(plan)),
      dice_(seed),
      slots_(std::make_unique<Slot[]>(kReceiveSlots)) {
  records_.reserve(plan_.size());
  for (std::size_t i = 0; i < kReceiveSlots; ++i) {
    slots_[i].buffer.resize(largest);
    post(i);
  }
}

void Receiver::post(std::size_t index) {
  Slot& slot = slots_[index];
  slot.posted = ++posts_;
  const pullman::Tag ignore = takes_anything(index) ? ~pullman::Tag{0} : 0;
  context_.receive(peer_, tag_of_plan(seed_, dice_.below(64)), ignore, slot.buffer, slot.request);
}

void Receiver::pump() {
  while (take_what_came()) {
  }
  // A peer that has sent everything may say good-bye before we have looked. Then receives for a tag
  // that does not come again fail, and rightly; one that takes anything fails only when nothing is
  // left.
  for (std::size_t i = 0; i < kReceiveSlots && !finished(); ++i) {
    if (takes_anything(i) && slots_[i].request.done()) status_ = slots_[i].request.status();
  }
}

bool Receiver::take_what_came() {
  bool some = false;
  for (std::size_t i = 0; i < kReceiveSlots && !finished(); ++i) {
    Slot& slot = slots_[i];
    if (!slot.request.done() || slot.request.status() != pullman::Status::kOk) continue;
    take(slot);
    some = true;
    if (!finished()) post(i);  // may complete at once
  }
  return some;
}

void Receiver::take(const Slot& slot) {
  const auto bytes = std::span(slot.buffer).first(slot.request.length());
  records_.push_back({slot.posted, slot.request.tag(), bytes.size(), hash_of(bytes)});
}

void Receiver::cancel() {
  for (std::size_t i = 0; i < kReceiveSlots; ++i) context_.cancel(slots_[i].request);
}

std::string Receiver::judge() const {
  const std::string wrong = judge_part(Missing::kBehindTheLast);
  if (!wrong.empty()) return wrong;
  return records_.size() == plan_.size() ? "" : "messages are missing";
}

std::string Receiver::judge_part(Missing missing) const {
  std::vector<Record> records = records_;
  std::sort(records.begin(), records.end(),
            [](const Record& a, const Record& b) { return a.posted < b.posted; });
  std::map<pullman::Tag, std::vector<const Message*>> expected;
  for (const Message& message : plan_) expected[message.tag].push_back(&message);
  std::map<pullman::Tag, std::size_t> seen;
  for (const Record& record : records) {
    const auto tag = expected.find(record.tag);
    if (tag == expected.end()) return "a message with a tag nobody sent";
    const auto is_it = [&record](const Message& sent) {
      return record.size == sent.size && record.hash == hash_of_contents(sent);
    };
    std::size_t& nth = seen[record.tag];
    while (missing == Missing::kAnywhere && nth < tag->second.size() && !is_it(*tag->second[nth])) {
      ++nth;
    }
    if (nth >= tag->second.size()) return "more messages of a tag than were sent, or a wrong one";
    if (!is_it(*tag->second[nth++])) return "a message out of order within its tag, or a wrong one";
  }
  return "";
}

}  // namespace soak
