#include "sim/ledger.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/wire.h"

namespace pullman::sim {
namespace {

std::uint8_t host_of_process(std::uint32_t process) {
  return static_cast<std::uint8_t>(process % kMaxHosts);
}

std::pair<std::uint32_t, std::uint64_t> key(std::uint32_t process, PeerId peer) {
  return {process, std::uint64_t{peer.generation} << 32 | peer.index};
}

}  // namespace

std::uint32_t Ledger::open(std::uint32_t process, PeerId peer, std::optional<std::uint8_t> host) {
  const auto next = static_cast<std::uint32_t>(conversations_.size());
  const auto [place, made] = by_handle_.try_emplace(key(process, peer), next);
  if (made) {
    conversations_.push_back(
        {.process = process, .peer = peer, .host = {}, .messages = {}, .receptions = {}});
  }
  Conversation& conversation = conversations_[place->second];
  if (host && conversation.host && *host != *conversation.host) {
    findings_.report(fmt::format("host {}: one handle names hosts {} and {}",
                                 host_of_process(process), *conversation.host, *host));
  }
  if (host) conversation.host = host;
  return place->second;
}

void Ledger::met(std::uint32_t process, PeerId peer) {
  met_.insert(key(process, peer));
}

bool Ledger::have_met(std::uint32_t process, PeerId peer) const {
  return met_.count(key(process, peer)) != 0;
}

MessageName Ledger::next(std::uint32_t conversation) const {
  return {conversation, static_cast<std::uint32_t>(conversations_[conversation].messages.size())};
}

void Ledger::sent(const MessageName& name, Tag tag, std::size_t length,
                  const SendOptions& options) {
  conversations_[name.conversation].messages.push_back(
      {.tag = tag, .length = length, .options = options});
  ++total_messages_;
}

void Ledger::send_done(const MessageName& name, Status status) {
  Conversation& conversation = conversations_[name.conversation];
  conversation.messages[name.index].send_status = status;
  if (status == Status::kOk && conversation.messages[name.index].options.synchronous) {
    check_matched(conversation, name);
  }
  if (status == Status::kOk || status == Status::kPending || status == Status::kClosed) return;
  // If only its arrival is known, whether a synchronous message was received is not.
  const bool tells =
      status == Status::kPeerClosed && !conversation.messages[name.index].options.synchronous;
  if (good_byes_arrive_ && tells && was_received(conversation, name)) {
    report(fmt::format("a send failed with {}, and it was received", pullman::name(status)), name);
  }
  const std::uint8_t host = host_of_process(conversation.process);
  if (!excuses_.allows(host, conversation.host, status,
                       have_met(conversation.process, conversation.peer))) {
    report(fmt::format("a send failed with {} and nothing was done to its peer",
                       pullman::name(status)),
           name);
  }
}

// Checks that a synchronous send is done only after a receive.
void Ledger::check_matched(const Conversation& conversation, const MessageName& name) const {
  if (was_received(conversation, name)) return;
  if (!excused(conversation)) report("a synchronous send is done, and nobody received it", name);
}

bool Ledger::was_received(const Conversation& conversation, const MessageName& name) {
  return std::any_of(conversation.receptions.begin(), conversation.receptions.end(),
                     [&](const Reception& reception) {
                       return name.index < reception.deliveries.size() &&
                              reception.deliveries[name.index].done;
                     });
}

void Ledger::received(std::uint32_t process, const Wanted& wanted, const Receipt& receipt,
                      std::span<const std::byte> received) {
  ++deliveries_;
  const auto name = name_of(receipt.tag, received);
  if (!name || name->conversation >= conversations_.size() ||
      name->index >= conversations_[name->conversation].messages.size()) {
    findings_.report(fmt::format("host {} received a message nobody sent: tag {:x}, {} bytes",
                                 host_of_process(process), receipt.tag, received.size()));
    return;
  }
  Conversation& conversation = conversations_[name->conversation];
  const Message& message = conversation.messages[name->index];
  check_result(message, wanted, receipt, received.size());
  const std::size_t wrong = first_difference(received, *name);
  if (wrong != received.size()) report(fmt::format("byte {} is wrong", wrong), *name);
  if (conversation.host && *conversation.host != host_of_process(process)) {
    report(fmt::format("sent to host {}, received by host {}", *conversation.host,
                       host_of_process(process)),
           *name);
  }
  Reception& reception = reception_of(conversation, process, receipt.source);
  if (reception.deliveries.size() <= name->index) reception.deliveries.resize(name->index + 1);
  Delivery& delivery = reception.deliveries[name->index];
  if (delivery.done) report("received twice", *name);
  delivery = {.done = true, .wanted = wanted};
  check_order(conversation, reception, name->index);
}

void Ledger::check_result(const Message& message, const Wanted& wanted, const Receipt& receipt,
                          std::size_t length) {
  const std::size_t kept = std::min<std::uint64_t>(message.length, wanted.capacity);
  const Status status = message.length > wanted.capacity ? Status::kTruncated : Status::kOk;
  if (receipt.tag != message.tag || receipt.message_length != message.length || length != kept ||
      receipt.status != status) {
    findings_.report(fmt::format(
        "received {} of {} bytes with tag {:x}, status {}; sent {} bytes with tag {:x} for {}",
        length, receipt.message_length, receipt.tag, pullman::name(receipt.status), message.length,
        message.tag, wanted.capacity));
  }
  if (!wanted.accepts(receipt.source, message.tag, message.options.space)) {
    findings_.report(
        fmt::format("tag {:x} in space {} matched a receive for {:x} ignoring {:x} in space {}",
                    message.tag, message.options.space, wanted.tag, wanted.ignore, wanted.space));
  }
  if (receipt.immediate != message.options.immediate) {
    findings_.report(fmt::format(
        "tag {:x} came with other immediate data than was sent, or without", message.tag));
  }
}

// Checks that one source handle always means one conversation.
Ledger::Reception& Ledger::reception_of(Conversation& conversation, std::uint32_t process,
                                        PeerId source) {
  const auto index = static_cast<std::uint32_t>(&conversation - conversations_.data());
  const auto [place, made] = by_source_.try_emplace(key(process, source), index);
  if (place->second != index) {
    findings_.report(fmt::format("host {}: one source handle stands for conversations {} and {}",
                                 host_of_process(process), place->second, index));
  }
  for (Reception& reception : conversation.receptions) {
    if (reception.process != process) continue;
    if (!(reception.source == source)) {
      findings_.report(fmt::format("host {}: conversation {} came from two handles",
                                   host_of_process(process), index));
    }
    return reception;
  }
  conversation.receptions.push_back({.process = process, .source = source, .deliveries = {}});
  return conversation.receptions.back();
}

// Messages of one sender match in the order sent, receives in the order posted: if both messages
// fit both receives, the earlier message must have the earlier receive.
void Ledger::check_order(const Conversation& conversation, const Reception& reception,
                         std::size_t index) {
  const Wanted& mine = reception.deliveries[index].wanted;
  for (std::size_t i = 0; i < reception.deliveries.size(); ++i) {
    const Delivery& other = reception.deliveries[i];
    if (!other.done || i == index) continue;
    const bool earlier = i < index;
    // The later message's receive would have taken the earlier message.
    const Wanted& later_wanted = earlier ? mine : other.wanted;
    const Message& earlier_message = conversation.messages[std::min(i, index)];
    const auto rank = [](const Wanted& wanted) { return std::pair(wanted.order, wanted.place); };
    const bool overtaken =
        earlier ? rank(other.wanted) > rank(mine) : rank(mine) > rank(other.wanted);
    if (overtaken && later_wanted.accepts(reception.source, earlier_message.tag,
                                          earlier_message.options.space)) {
      const auto number = static_cast<std::uint32_t>(&conversation - conversations_.data());
      report(fmt::format("message {} overtook message {}", std::max(i, index), std::min(i, index)),
             {number, static_cast<std::uint32_t>(index)});
    }
  }
}

void Ledger::probed(std::uint32_t process, const Probe& probe) {
  if ((probe.tag & kNamedTag) == 0) return;  // several messages may have this tag
  const auto name = name_of(probe.tag, {});
  if (name->conversation >= conversations_.size() ||
      name->index >= conversations_[name->conversation].messages.size()) {
    findings_.report(fmt::format("probe saw a message nobody sent: tag {:x}", probe.tag));
    return;
  }
  const Conversation& conversation = conversations_[name->conversation];
  if (conversation.messages[name->index].length != probe.length) {
    report(fmt::format("probe says {} bytes", probe.length), *name);
  }
  for (const Reception& reception : conversation.receptions) {
    if (reception.process == process && name->index < reception.deliveries.size() &&
        reception.deliveries[name->index].done) {
      report("probe saw a message that was received before", *name);
    }
  }
}

std::optional<std::uint8_t> Ledger::host_of(std::uint32_t process, PeerId peer) const {
  const auto place = by_source_.find(key(process, peer));
  if (place == by_source_.end()) return std::nullopt;
  return host_of_process(conversations_[place->second].process);
}

std::optional<Tag> Ledger::awaited(std::uint32_t process, std::uint64_t choice) const {
  if (conversations_.empty()) return std::nullopt;
  const Conversation& conversation = conversations_[choice % conversations_.size()];
  if (conversation.messages.empty() || conversation.host != host_of_process(process)) {
    return std::nullopt;
  }
  const std::size_t index = (choice >> 32) % conversation.messages.size();
  for (const Reception& reception : conversation.receptions) {
    if (reception.process == process && index < reception.deliveries.size() &&
        reception.deliveries[index].done) {
      return std::nullopt;
    }
  }
  return conversation.messages[index].tag;
}

std::size_t Ledger::owed(const std::vector<std::uint32_t>& living, bool say) const {
  const auto lives = [&](std::uint32_t process) {
    return std::find(living.begin(), living.end(), process) != living.end();
  };
  std::size_t owed = 0;
  for (std::uint32_t c = 0; c < conversations_.size(); ++c) {
    const Conversation& conversation = conversations_[c];
    if (!lives(conversation.process) || excused(conversation)) continue;
    for (std::uint32_t i = 0; i < conversation.messages.size(); ++i) {
      const Status status = conversation.messages[i].send_status;
      if (status != Status::kOk && status != Status::kPending) continue;
      const bool arrived = std::any_of(conversation.receptions.begin(),
                                       conversation.receptions.end(), [&](const auto& reception) {
                                         return lives(reception.process) &&
                                                i < reception.deliveries.size() &&
                                                reception.deliveries[i].done;
                                       });
      if (arrived) continue;
      ++owed;
      if (say) report(fmt::format("never received; its send is {}", pullman::name(status)), {c, i});
    }
  }
  return owed;
}

bool Ledger::excused(const Conversation& conversation) const {
  const std::uint8_t host = host_of_process(conversation.process);
  std::optional<std::uint8_t> other = conversation.host;
  if (!conversation.receptions.empty()) {
    other = host_of_process(conversation.receptions.back().process);
  }
  return excuses_.any(host, other, have_met(conversation.process, conversation.peer));
}

void Ledger::report(const std::string& what, const MessageName& name) const {
  const Conversation& conversation = conversations_[name.conversation];
  const Message& message = conversation.messages[name.index];
  findings_.report(
      fmt::format("{}: message {} of conversation {} (host {} to {}), tag {:x}, {} bytes", what,
                  name.index, name.conversation, host_of_process(conversation.process),
                  conversation.host ? fmt::format("host {}", *conversation.host) : "whoever it is",
                  message.tag, message.length));
}

}  // namespace pullman::sim
