#include "world/side_channel.h"

#include <algorithm>
#include <exception>
#include <set>
#include <utility>

#include "base/host_name.h"
#include "base/log.h"
#include "context/service.h"
#include "pullman/status.h"
#include "shm/owned_file.h"
#include "world/mail.h"
#include "world/names.h"
#include "world/summary.h"

namespace pullman::world {
namespace {

constexpr std::size_t kMaxMessageBytes = std::max(kMaxQuestionBytes, 13 + kMaxSummaryBytes);
static_assert(kMaxMessageBytes <= telemetry::kMaxDoorBytes);

// One receive is for both: they differ in the lowest bit of their kind.
constexpr Tag kEitherKind = Tag{1} << kKindShift | kAnyNumber;
static_assert((static_cast<Tag>(Kind::kQuestion) ^ static_cast<Tag>(Kind::kAnswer)) == 1);

}  // namespace

SideChannel::SideChannel(Context& context, Roster& roster, const CurrentCall& current, Place place)
    : context_(context),
      roster_(roster),
      current_(current),
      place_(place),
      host_(host_name()),
      buffer_(kMaxMessageBytes),
      received_(context, [this](CallbackRequest&) { attend(); }) {
  std::filesystem::path path = Context::Service::counters(context);
  if (!path.empty() && place.size <= kMaxAskedSize) {
    try {
      door_.emplace(path += telemetry::kDoorExtension);
    } catch (const shm::MemoryError& error) {
      log().info("pullman-stat --job cannot ask this process: {}", error.what());
    }
  }
  const std::lock_guard locked(attending_);
  Context::Service::attend(context, received_, door_ ? door_->descriptor() : -1);
}

SideChannel::~SideChannel() {
  Context::Service::end_attendance(context_, door_ ? door_->descriptor() : -1);
  {
    const std::lock_guard locked(attending_);
    ended_ = true;
  }
  context_.close();
}

void SideChannel::set_addresses(std::vector<std::vector<std::string>> addresses) {
  const std::lock_guard locked(attending_);
  addresses_ = std::move(addresses);
}

// What goes wrong here must not go wrong in the program's call that happened to make the turn.
void SideChannel::attend() {
  const std::lock_guard locked(attending_);
  if (ended_) return;
  try {
    receive();
    sent_.remove_if([](const Sent& sent) { return sent.request.done(); });
    if (!door_) return;
    if (const auto question = door_->next()) handle_visitor(*question);
  } catch (const std::exception& error) {
    log().info("a question about the job is not answered: {}", error.what());
  }
}

// One message at a time: if the next one is there already, this is called behind the next turn.
void SideChannel::receive() {
  if (!received_.done() || received_.status() == Status::kClosed) return;
  Bytes bytes;
  const PeerId from = received_.source();
  const auto kind = static_cast<Kind>(received_.tag() >> kKindShift);
  const bool is_message = received_.status() == Status::kOk && received_.length() != 0;
  if (is_message) {
    bytes.assign(buffer_.begin(),
                 buffer_.begin() + static_cast<std::ptrdiff_t>(received_.length()));
  }
  ReceiveOptions options;
  options.space = kOwnSpace;
  context_.receive(kAnyPeer, tag_of(Kind::kQuestion, 0), kEitherKind, buffer_, options, received_);
  if (is_message) handle_message(from, kind, bytes);
}

void SideChannel::handle_message(PeerId from, Kind kind, std::span<const std::byte> bytes) {
  if (const auto rank = roster_.rank_of_latest(from)) unanswered_.erase(*rank);
  if (kind == Kind::kQuestion) {
    handle_question(from, bytes);
  } else {
    handle_answer(bytes);
  }
}

void SideChannel::handle_question(PeerId from, std::span<const std::byte> bytes) {
  auto question = decode_question(bytes);
  if (!question || question->asked.size() != place_.size) return;
  if (find(question->number) != nullptr) return;
  const Asked asked{.number = question->number, .from = from};
  remember(asked);
  answer(asked, about_itself(question->number));
  pass_on(std::move(*question), from);
}

void SideChannel::handle_answer(std::span<const std::byte> bytes) {
  const auto told = decode_answer(bytes);
  if (!told || told->rank >= place_.size) return;
  unanswered_.erase(told->rank);
  if (const Asked* asked = find(told->number)) answer(*asked, bytes);
}

void SideChannel::handle_visitor(const telemetry::Door::Question& from) {
  auto question = decode_question(from.bytes);
  if (!question) return;
  // A visitor that knows nothing yet does not know the size either.
  const bool is_first = question->asked.size() != place_.size;
  if (is_first) question->asked = RankSet(place_.size);
  question->number = std::uint64_t{place_.rank} << 32 | (++questions_ & 0xFFFFFFFF);
  const Asked asked{.number = question->number, .visitor = from.visitor};
  remember(asked);
  answer(asked, about_itself(question->number));
  if (!is_first) call_unconnected(*question);
  pass_on(std::move(*question), std::nullopt);
}

// Those that get it are told which others do, and pass it on to the rest only. One that has left a
// question without an answer counts as asked no more: another may have a way to it that works.
void SideChannel::pass_on(Question question, std::optional<PeerId> from) {
  question.asked.insert(place_.rank);
  question.asked.insert(question.rank);
  question.rank = place_.rank;
  std::vector<PeerId> to;
  for (const auto& [rank, peer] : roster_.connected()) {
    if (to.size() == kMaxAtOnce || question.asked.contains(rank) || peer == from) continue;
    unsigned& unanswered = unanswered_[rank];
    if (unanswered == 0) question.asked.insert(rank);
    if (unanswered == kMaxUnanswered) continue;
    ++unanswered;
    to.push_back(peer);
  }
  const Bytes bytes = encode(question);
  for (const PeerId peer : to) send(peer, Kind::kQuestion, bytes);
}

// Only where a question begins, else all processes would call the same ones; and only when it is
// put again, so that those are called that are connected to no process that was reached.
void SideChannel::call_unconnected(Question& question) {
  std::set<unsigned> connected;
  for (const auto& [rank, peer] : roster_.connected()) connected.insert(rank);
  const Bytes bytes =
      encode(Question{.number = question.number, .rank = place_.rank, .asked = question.asked});
  unsigned calls = 0;
  for (unsigned rank = 0; rank < addresses_.size() && calls < kMaxCalls; ++rank) {
    if (rank == place_.rank || question.asked.contains(rank) || connected.contains(rank)) continue;
    unsigned& unanswered = unanswered_[rank];
    if (unanswered == kMaxUnanswered) continue;
    ++unanswered;
    ++calls;
    try {
      send(context_.connect(addresses_[rank]), Kind::kQuestion, bytes);
      question.asked.insert(rank);
    } catch (const Error& error) {
      log().debug("{} cannot be asked: {}", name_of(rank), error.what());
    }
  }
}

SideChannel::Asked* SideChannel::find(std::uint64_t number) {
  const auto found = std::find_if(asked_.begin(), asked_.end(), [number](const Asked& one) {
    return one.number == number && (one.visitor != 0 || one.from != PeerId{});
  });
  return found == asked_.end() ? nullptr : &*found;
}

void SideChannel::remember(const Asked& asked) {
  asked_[next_asked_++ % kRemembered] = asked;
}

void SideChannel::answer(const Asked& asked, std::span<const std::byte> bytes) {
  if (asked.visitor == 0) return send(asked.from, Kind::kAnswer, bytes);
  if (door_) door_->answer(asked.visitor, bytes);
}

void SideChannel::send(PeerId to, Kind kind, std::span<const std::byte> bytes) {
  if (sent_.size() >= kMaxUnsent) return;
  Sent& sent = sent_.emplace_back();
  sent.bytes.assign(bytes.begin(), bytes.end());
  SendOptions options;
  options.space = kOwnSpace;
  options.priority = true;
  context_.send(to, tag_of(kind, 0), sent.bytes, options, sent.request);
}

Bytes SideChannel::about_itself(std::uint64_t number) {
  roster_.connected();  // notes who has introduced itself
  Summary summary{.rank = place_.rank, .size = place_.size, .host = host_};
  summary.collective = current_.get();
  Context::Service::Activity activity;
  const telemetry::Rows rows = Context::Service::rows(context_, activity);
  const auto rank_of = [this](std::uint64_t index, std::uint64_t generation) {
    const PeerId peer{static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(generation)};
    return roster_.rank_of_latest(peer).value_or(kNoRank);
  };
  describe(rows, activity, rank_of, summary);
  return encode(Answer{.number = number, .rank = place_.rank, .summary = encode(summary)});
}

}  // namespace pullman::world
