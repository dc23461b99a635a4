#include "stream.h"

#include <algorithm>

namespace perf {

namespace {

constexpr std::size_t kMaxMemory = std::size_t{1} << 30;  // of one direction's slots, with --check

std::size_t slots_for(const Job& job) {
  if (!job.check || job.size == 0) return job.window;
  return std::clamp<std::size_t>(kMaxMemory / job.size, 1, job.window);
}

}  // namespace

Slots::Slots(const Job& job)
    : count_(slots_for(job)),
      size_(job.size),
      shared_(!job.check),
      memory_(shared_ ? size_ : size_ * count_),
      requests_(std::make_unique<pullman::Request[]>(count_)) {}

StreamSender::StreamSender(Session& session, const Job& job, bool from_server)
    : session_(session), job_(job), from_server_(from_server), slots_(job) {}

std::uint64_t StreamSender::pump(std::uint64_t most) {
  std::uint64_t count = 0;
  for (; count < most; ++count) {
    pullman::Request& request = slots_.request(sent_);
    if (!request.done()) break;
    session_.expect_ok(request);
    const std::span<std::byte> buffer = slots_.buffer(sent_);
    if (job_.check) fill(buffer, {job_.run, sent_, from_server_});
    session_.context().send(session_.peer(), data_tag(job_.run), buffer, request);
    ++sent_;
  }
  return count;
}

void StreamSender::finish() {
  for (std::size_t slot = 0; slot < slots_.count(); ++slot) session_.finish(slots_.request(slot));
}

StreamReceiver::StreamReceiver(Session& session, const Job& job, bool from_server)
    : session_(session), job_(job), from_server_(from_server), slots_(job) {
  for (std::size_t slot = 0; slot < slots_.count(); ++slot) post(slot);
  session_.listen(Word::kEnd, end_, end_buffer_);
}

void StreamReceiver::post(std::uint64_t number) {
  session_.context().receive(session_.peer(), data_tag(job_.run), 0, slots_.buffer(number),
                             slots_.request(number));
}

std::uint64_t StreamReceiver::pump() {
  std::uint64_t count = 0;
  // At most one window, so that a receive() which completes at once cannot keep us here.
  while (count < slots_.count() && received_ < expected_ && slots_.request(received_).done()) {
    judge(received_);
    post(received_ + slots_.count());
    ++received_;
    ++count;
  }
  return count;
}

void StreamReceiver::judge(std::uint64_t number) {
  const pullman::Request& request = slots_.request(number);
  session_.expect_ok(request);
  const bool right =
      request.length() == job_.size &&
      (!job_.check || holds(slots_.buffer(number), {job_.run, number, from_server_}));
  if (!right) ++errors_;
}

bool StreamReceiver::complete() {
  if (expected_ == ~std::uint64_t{0} && end_.done()) {
    const nlohmann::json word = session_.heard(end_, end_buffer_);
    const auto sent = word.find("sent");
    if (sent == word.end() || !sent->is_number_unsigned()) {
      session_.close_abortively("did not say how many messages it sent");
    }
    expected_ = sent->get<std::uint64_t>();
  }
  return received_ >= expected_;
}

void StreamReceiver::cancel() {
  for (std::size_t slot = 0; slot < slots_.count(); ++slot) {
    session_.context().cancel(slots_.request(slot));
    if (!slots_.request(slot).done()) session_.close_abortively("sent more messages than it said");
  }
}

}  // namespace perf
