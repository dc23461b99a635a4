#include "message/rma/one_sided.h"

#include <cstring>
#include <functional>

namespace pullman::message {
namespace {

SendDescriptor descriptor_of_answer(MessageId to, ConstSegments bytes) {
  SendDescriptor descriptor;
  descriptor.kind = wire::kind_of(wire::Class::kAnswer);
  descriptor.tag = to;
  descriptor.segments = bytes;
  descriptor.size = size_of_all(bytes);
  descriptor.is_solicited = true;
  return descriptor;
}

}  // namespace

void OneSided::ask(PeerId peer, const SendDescriptor& asking, Segments sink, Request& request) {
  Operation& op = Operation::of(request);
  PendingRequests& pending = state().pending;
  make_room(op, sink.size());
  SendDescriptor descriptor = asking;
  descriptor.asker = &op;
  descriptor.only_copy = true;
  Request at_once;
  make_room(Operation::of(at_once), asking.segments.size());
  op.message = PendingRequests::kNotSent;
  std::unique_ptr<RequestCopy> request_copy;
  if (outbox_.send(peer, descriptor, at_once) != Status::kOk) request_copy = copy_of(asking);
  op.begin(Operation::Kind::kAsk, peer, asking.tag);
  describe_sink(op, sink);
  pending.add(op);
  if (request_copy == nullptr) return;
  const std::span<const std::byte> whole[] = {request_copy->bytes};
  descriptor.only_copy = false;
  descriptor.segments = whole;
  Request& sent = request_copy.release()->request;  // deletes itself when done
  outbox_.send(peer, descriptor, sent);
}

std::unique_ptr<OneSided::RequestCopy> OneSided::copy_of(const SendDescriptor& asking) {
  auto request_copy = std::make_unique<RequestCopy>();
  request_copy->bytes.reserve(asking.size);
  for (const auto& segment : asking.segments) {
    request_copy->bytes.insert(request_copy->bytes.end(), segment.begin(), segment.end());
  }
  request_copy->request.user = request_copy.get();
  request_copy->request.on_done = [](Request& done) {
    delete static_cast<RequestCopy*>(done.user);
  };
  return request_copy;
}

bool OneSided::handle_result(MessageId id, Status status) {
  Request* request = find_pending(id);
  if (request == nullptr) return false;
  remove_pending(*request);
  Operation& op = Operation::of(*request);
  op.finish(status, status == Status::kOk ? op.size : 0);
  return true;
}

// Returns true if it is in a packet: then nothing has to be remembered.
bool OneSided::answer_at_once(const Asker& asker, ConstSegments bytes) {
  SendDescriptor descriptor = descriptor_of_answer(asker.id, bytes);
  descriptor.only_copy = true;
  Request request;
  if (outbox_.send(asker.peer, descriptor, request) != Status::kOk) return false;
  asker.allowance.give_back(asker.charge);
  return true;
}

// The answer deletes itself when it is delivered.
OneSided::Answer& OneSided::add_answer(const Asker& asker) {
  auto answer = std::make_unique<Answer>(*this, asker);
  state().answers.push_back(*answer);
  return *answer.release();
}

void OneSided::answer(const Asker& asker, std::span<const std::byte> bytes) {
  const std::span<const std::byte> whole[] = {bytes};
  if (answer_at_once(asker, whole)) return;
  outbox_.send(asker.peer, descriptor_of_answer(asker.id, whole), add_answer(asker).request);
}

void OneSided::answer_with_copy(const Asker& asker, std::span<const std::byte> bytes) {
  const std::span<const std::byte> given[] = {bytes};
  if (answer_at_once(asker, given)) return;
  Answer& answer = add_answer(asker);
  answer.copy.assign(bytes.begin(), bytes.end());
  const std::span<const std::byte> whole[] = {answer.copy};
  outbox_.send(asker.peer, descriptor_of_answer(asker.id, whole), answer.request);
}

void OneSided::Answer::handle_delivered() {
  allowance.give_back(charge);
  auto& answers = owner.state_->answers;
  answers.erase(answers.iterator_to(*this));
  delete this;
}

std::span<const std::byte> OneSided::Answer::copy_out_of(std::span<const std::byte> range) {
  Operation& op = Operation::of(request);
  const std::span<const std::byte> was(op.buffer, op.size);
  const std::less<const std::byte*> before;
  const bool inside = !was.empty() && !before(was.data(), range.data()) &&
                      before(was.data(), range.data() + range.size());
  if (!inside) return {};
  copy.assign(was.begin(), was.end());
  op.buffer = copy.data();
  return was;
}

}  // namespace pullman::message
