#include "ofi/endpoint/shared_receiver.h"

#include <algorithm>

#include "base/check.h"
#include "ofi/endpoint/failed_call.h"

namespace pullman::ofi {

std::optional<Probe> SharedReceiver::next_unexpected(Space space) {
  if (!is_endpoint_enabled()) return std::nullopt;
  return transport_->next_unexpected(space_at(0, space));
}

bool SharedReceiver::matches(const ReceiveCall& call, const Probe& message) const {
  return ((call.tag ^ message.tag) & ~call.ignore) == 0 &&
         (!poster_.is_directed(call) || connections_.peer(call.from) == message.source);
}

bool SharedReceiver::receive(const ReceiveCall& call, MultiReceiveBuffer* buffer) {
  const PeerId source = poster_.source_of(call);
  if (!is_endpoint_enabled() || poster_.lacks_source(call, source)) return false;
  ReceiveCall own = call;
  own.lane = &lane_;
  Operation* operation = operations_.take(own);
  if (operation == nullptr) return false;
  const auto found = transport_->claim(source, call.tag, call.ignore, space_at(0, call.space));
  if (!found) {
    operations_.give_back(*operation);
    return false;
  }
  iovec rest{};
  if (buffer != nullptr) {
    rest = {buffer->at, buffer->left};
    own.segments = &rest;
    own.count = 1;
    operation->multi_receive = buffer;
    operation->taken = buffer->at;
    ++buffer->in_flight;
    buffer->use(static_cast<std::size_t>(std::min<std::uint64_t>(found->length, buffer->left)),
                found->length <= buffer->left);
  }
  activity_.note_call();
  const Status status = poster_.start_claimed(found->claimed, own, *operation);
  PULLMAN_CHECK(status == Status::kOk || status == Status::kPending ||
                status == Status::kTruncated);  // it was claimed just now
  operations_.settle(*operation, status);
  return true;
}

bool SharedReceiver::is_receiving(const void* context) const {
  return operations_.find_receive(lane_, context) != nullptr;
}

void SharedReceiver::report_failure(ReceiveCall call, Status why) {
  call.lane = &lane_;
  ofi::report_failure(call, why);
}

bool SharedReceiver::has_source(const ReceiveCall& call) const {
  return !poster_.is_directed(call) || connections_.has_address(call.from);
}

PeerState SharedReceiver::source_state(const ReceiveCall& call) const {
  if (!is_endpoint_enabled() || !poster_.is_directed(call)) return PeerState::kConnecting;
  return connections_.state(call.from);
}

}  // namespace pullman::ofi
