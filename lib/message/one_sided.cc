#include "message/one_sided.h"

#include <cstring>
#include <functional>

namespace pullman::message {

void OneSided::ask(PeerId peer, const SendDescriptor& question, Segments sink, Request& request) {
  detail::Operation& op = request.operation();
  Asked& asked = both().asked;
  make_room(op, sink.size());
  SendDescriptor descriptor = question;
  descriptor.asker = &op;
  descriptor.only_copy = true;
  Request at_once;
  make_room(at_once.operation(), question.pieces.size());
  op.message = Asked::kNotSent;
  std::unique_ptr<RequestCopy> request_copy;
  if (outbox_.send(peer, descriptor, at_once) != Status::kOk) request_copy = courier_for(question);
  request.begin(detail::Operation::Kind::kAsk, peer, question.tag);
  describe_sink(op, sink);
  asked.add(op);
  if (request_copy == nullptr) return;
  const std::span<const std::byte> whole[] = {request_copy->bytes};
  descriptor.only_copy = false;
  descriptor.pieces = whole;
  Request& sent = request_copy.release()->request;  // deletes itself when it is done
  outbox_.send(peer, descriptor, sent);
}

std::unique_ptr<OneSided::RequestCopy> OneSided::courier_for(const SendDescriptor& question) {
  auto request_copy = std::make_unique<RequestCopy>();
  request_copy->bytes.reserve(question.size);
  for (const auto& piece : question.pieces) {
    request_copy->bytes.insert(request_copy->bytes.end(), piece.begin(), piece.end());
  }
  request_copy->request.user = request_copy.get();
  request_copy->request.on_done = [](Request& done) {
    delete static_cast<RequestCopy*>(done.user);
  };
  return request_copy;
}

bool OneSided::handle_result(MessageId id, Status status) {
  Request* request = waiting_for(id);
  if (request == nullptr) return false;
  answered(*request);
  request->finish(status, status == Status::kOk ? request->operation().size : 0);
  return true;
}

namespace {

SendDescriptor descriptor_of_answer(MessageId asked, ConstSegments bytes) {
  SendDescriptor descriptor;
  descriptor.kind = wire::kind_of(wire::Class::kAnswer);
  descriptor.tag = asked;
  descriptor.pieces = bytes;
  descriptor.size = size_of_all(bytes);
  descriptor.is_solicited = true;
  return descriptor;
}

}  // namespace

// True if it is in a packet: nothing is to be remembered.
bool OneSided::answer_at_once(const Question& question, ConstSegments bytes) {
  SendDescriptor descriptor = descriptor_of_answer(question.id, bytes);
  descriptor.only_copy = true;
  Request request;
  if (outbox_.send(question.peer, descriptor, request) != Status::kOk) return false;
  question.allowance.give_back(question.charge);
  return true;
}

void OneSided::answer(const Question& question, std::span<const std::byte> bytes) {
  const std::span<const std::byte> whole[] = {bytes};
  if (answer_at_once(question, whole)) return;
  auto answer = std::make_unique<Answer>(*this, question);
  both().answers.push_back(*answer);
  outbox_.send(question.peer, descriptor_of_answer(question.id, whole), answer.release()->request);
}

void OneSided::answer_with_copy(const Question& question, std::span<const std::byte> bytes) {
  const std::span<const std::byte> lent[] = {bytes};
  if (answer_at_once(question, lent)) return;
  auto answer = std::make_unique<Answer>(*this, question);
  both().answers.push_back(*answer);
  answer->copy.assign(bytes.begin(), bytes.end());
  const std::span<const std::byte> whole[] = {answer->copy};
  outbox_.send(question.peer, descriptor_of_answer(question.id, whole), answer.release()->request);
}

void OneSided::Answer::delivered() {
  allowance.give_back(charge);
  auto& answers = owner.both_->answers;
  answers.erase(answers.iterator_to(*this));
  delete this;
}

std::span<const std::byte> OneSided::Answer::own_copy_of(std::span<const std::byte> range) {
  detail::Operation& op = request.operation();
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
