#include "message/one_sided.h"

#include <cstring>
#include <functional>

namespace pullman::message {

void OneSided::ask(PeerId peer, const Parcel& question, Pieces sink, Request& request) {
  detail::Operation& op = request.operation();
  Asked& asked = both().asked;
  make_room(op, sink.size());
  Parcel parcel = question;
  parcel.asker = &op;
  parcel.only_copy = true;
  Request at_once;
  make_room(at_once.operation(), question.pieces.size());
  op.message = Asked::kNotSent;
  std::unique_ptr<Courier> courier;
  if (outbox_.send(peer, parcel, at_once) != Status::kOk) courier = courier_for(question);
  request.begin(detail::Operation::Kind::kAsk, peer, question.tag);
  describe_sink(op, sink);
  asked.add(op);
  if (courier == nullptr) return;
  const std::span<const std::byte> whole[] = {courier->bytes};
  parcel.only_copy = false;
  parcel.pieces = whole;
  Request& sent = courier.release()->request;  // deletes itself when it is done
  outbox_.send(peer, parcel, sent);
}

std::unique_ptr<OneSided::Courier> OneSided::courier_for(const Parcel& question) {
  auto courier = std::make_unique<Courier>();
  courier->bytes.reserve(question.size);
  for (const auto& piece : question.pieces) {
    courier->bytes.insert(courier->bytes.end(), piece.begin(), piece.end());
  }
  courier->request.user = courier.get();
  courier->request.on_done = [](Request& done) { delete static_cast<Courier*>(done.user); };
  return courier;
}

bool OneSided::handle_result(MessageId id, Status status) {
  Request* request = waiting_for(id);
  if (request == nullptr) return false;
  answered(*request);
  request->finish(status, status == Status::kOk ? request->operation().size : 0);
  return true;
}

namespace {

Parcel parcel_of_answer(MessageId asked, ConstPieces bytes) {
  Parcel parcel;
  parcel.kind = wire::kind_of(wire::Class::kAnswer);
  parcel.tag = asked;
  parcel.pieces = bytes;
  parcel.size = size_of_all(bytes);
  parcel.is_solicited = true;
  return parcel;
}

}  // namespace

// True if it is in a packet: nothing is to be remembered.
bool OneSided::answer_at_once(const Question& question, ConstPieces bytes) {
  Parcel parcel = parcel_of_answer(question.id, bytes);
  parcel.only_copy = true;
  Request request;
  if (outbox_.send(question.peer, parcel, request) != Status::kOk) return false;
  question.allowance.give_back(question.charge);
  return true;
}

void OneSided::answer(const Question& question, std::span<const std::byte> bytes) {
  const std::span<const std::byte> whole[] = {bytes};
  if (answer_at_once(question, whole)) return;
  auto answer = std::make_unique<Answer>(*this, question);
  both().answers.push_back(*answer);
  outbox_.send(question.peer, parcel_of_answer(question.id, whole), answer.release()->request);
}

void OneSided::answer_with_copy(const Question& question, std::span<const std::byte> bytes) {
  const std::span<const std::byte> lent[] = {bytes};
  if (answer_at_once(question, lent)) return;
  auto answer = std::make_unique<Answer>(*this, question);
  both().answers.push_back(*answer);
  answer->copy.assign(bytes.begin(), bytes.end());
  const std::span<const std::byte> whole[] = {answer->copy};
  outbox_.send(question.peer, parcel_of_answer(question.id, whole), answer.release()->request);
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
