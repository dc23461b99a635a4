#include "nic/choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "nic/prefix.h"

namespace pullman::nic {
namespace {

bool through_kernel(const Device& device) {
  return device.provider == "udp" || device.provider.empty();
}

// One item of Config::nics.
class Item {
 public:
  // Matches everything.
  Item() : broad_(true) {}
  explicit Item(const std::string& text)
      : text_(text),
        scope_(scope_of(text)),
        prefix_(parse_prefix(std::string_view(text).substr(0, text.find('%')))),
        broad_(text.find('/') != std::string::npos) {}

  const std::string& text() const { return text_; }
  bool malformed() const { return !text_.empty() && broad_ && !prefix_; }
  // Whether the item need not mean every device that matches it: it is everything, or a prefix.
  bool broad() const { return broad_; }

  bool matches(const Device& device) const {
    return text_.empty() || device.name == text_ || has_address(device);
  }
  // Whether this very address is meant, not only its NIC.
  bool means_address(const Device& device) const { return !broad_ && has_address(device); }
  bool means_link_local() const { return prefix_ && is_link_local(prefix_->network); }

 private:
  static std::string scope_of(const std::string& text) {
    const std::size_t sign = text.find('%');
    return sign == std::string::npos ? "" : text.substr(sign + 1);
  }

  // A scope is an interface's number or its name.
  bool has_address(const Device& device) const {
    if (!prefix_) return host_string(device.address) == text_;
    const bool scoped =
        scope_.empty() || scope_ == device.name || scope_ == scope_of(host_string(device.address));
    return scoped && contains(*prefix_, device.address);
  }

  std::string text_;              // empty: everything
  std::string scope_;             // of an IPv6 address, behind "%"; empty: none
  std::optional<Prefix> prefix_;  // an address is a prefix of full length
  bool broad_;
};

// A device that is being judged.
struct Candidate {
  explicit Candidate(const Device& judged) : device(&judged) {}

  const Device* device;
  std::optional<std::size_t> item;  // index of the first wanted item that it matches
  bool by_address = false;          // whether that item is its very address
  bool chosen = false;
  std::string why_not;  // set when it is ruled out

  bool open() const { return item.has_value() && why_not.empty(); }
};

using Nic = std::vector<Candidate*>;  // devices of one name

// Ranks the addresses of one NIC; those of one rank serve the same purpose.
int rank(const Candidate& candidate) {
  if (candidate.by_address) return 0;
  if (is_link_local(candidate.device->address)) return 3;
  return candidate.device->address.kind == 6 ? 2 : 1;
}

bool comes_before(const Nic& a, const Nic& b) {
  const Device& one = *a.front()->device;
  const Device& other = *b.front()->device;
  if (*a.front()->item != *b.front()->item) return *a.front()->item < *b.front()->item;
  if (one.standing != other.standing) return one.standing < other.standing;
  if (one.distance != other.distance) return one.distance < other.distance;
  if (one.mbps != other.mbps) return one.mbps > other.mbps;
  return one.name < other.name;
}

std::string known_devices(const std::vector<Device>& devices) {
  std::vector<std::string> names;
  names.reserve(devices.size());
  for (const Device& device : devices) {
    names.push_back(fmt::format("{} ({})", device.name, host_string(device.address)));
  }
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

class Chooser {
 public:
  Chooser(const std::vector<Device>& devices, const std::vector<std::string>& wanted,
          const Most& most)
      : devices_(devices), most_(most) {
    for (const Device& device : devices) candidates_.emplace_back(device);
    for (const std::string& text : wanted) {
      if (text.starts_with('!')) {
        excluded_.emplace_back(text.substr(1));
      } else {
        wanted_.emplace_back(text);
      }
    }
    if (wanted_.empty()) wanted_.emplace_back();
  }

  Choice choose() {
    for (const Item& item : excluded_) exclude(item);
    for (std::size_t i = 0; i < wanted_.size(); ++i) claim(i);
    drop_unusable_devices();
    for (Candidate& candidate : candidates_) judge_alone(candidate);
    leave_out_lone_link_locals();
    leave_out_the_lesser();
    if (choice_.problem.empty()) take();
    return finish();
  }

 private:
  void fail(const std::string& problem) {
    if (choice_.problem.empty()) choice_.problem = problem;
  }
  void fail_if_malformed(const Item& item);
  void exclude(const Item& item);
  void claim(std::size_t number);
  void fail_without(const Item& item);
  bool too_short(const Device& device) const { return device.packet_bytes < most_.least_packet; }
  bool of_use(const Device& device) const { return device.up && !too_short(device); }
  std::string what_to_do(const Item& item, const Device& device) const;
  void drop_unusable_devices();
  void judge_alone(Candidate& candidate) const;
  bool is_beside_better(const Candidate& candidate) const;
  void leave_out_lone_link_locals();
  void leave_out_the_lesser();
  std::vector<Nic> nics();
  void take();
  void arrange(Nic& nic) const;
  Choice finish();

  const std::vector<Device>& devices_;
  const Most most_;
  std::vector<Candidate> candidates_;
  std::vector<Item> wanted_;
  std::vector<Item> excluded_;
  bool any_of_use_ = false;  // whether any wanted item can be used
  Choice choice_;
};

void Chooser::fail_if_malformed(const Item& item) {
  if (!item.malformed()) return;
  fail(fmt::format("'{}' is no prefix: write ADDRESS/BITS, as in 10.0.0.0/8", item.text()));
}

void Chooser::exclude(const Item& item) {
  fail_if_malformed(item);
  for (Candidate& candidate : candidates_) {
    if (!candidate.why_not.empty() || !item.matches(*candidate.device)) continue;
    candidate.why_not = fmt::format("'!{}' excludes it", item.text());
  }
}

// Assigns to the item all devices that match it.
void Chooser::claim(std::size_t number) {
  const Item& item = wanted_[number];
  fail_if_malformed(item);
  const Device* useless = nullptr;
  bool useful = false;
  for (Candidate& candidate : candidates_) {
    if (!candidate.why_not.empty() || !item.matches(*candidate.device)) continue;
    if (!candidate.item) candidate.item = number;
    candidate.by_address = candidate.by_address || item.means_address(*candidate.device);
    if (of_use(*candidate.device)) {
      useful = true;
    } else {
      useless = candidate.device;
    }
  }
  if (useful) {
    any_of_use_ = true;
  } else if (useless != nullptr && !item.text().empty()) {
    choice_.lacks.push_back(what_to_do(item, *useless));
  } else {
    fail_without(item);
  }
}

std::string Chooser::what_to_do(const Item& item, const Device& device) const {
  if (!device.up) {
    return fmt::format("NIC '{}' is down, or has no link: ip link set {} up", item.text(),
                       device.name);
  }
  return fmt::format(
      "NIC '{}' carries packets of {} bytes only, and {} are needed: raise its MTU by "
      "{}",
      item.text(), device.packet_bytes, most_.least_packet,
      most_.least_packet - device.packet_bytes);
}

void Chooser::drop_unusable_devices() {
  if (any_of_use_ || choice_.lacks.empty()) return;
  fail(choice_.lacks.front());
  choice_.lacks.clear();
}

void Chooser::fail_without(const Item& item) {
  if (item.text().empty()) {
    fail(excluded_.empty()
             ? "there is no NIC this driver can use: none has an address, a link and an MTU that "
               "is large enough"
             : "there is no NIC this driver can use: none that is not excluded has an address, a "
               "link and an MTU that is large enough");
  } else {
    fail(fmt::format("there is no NIC '{}' for this driver; there are: {}", item.text(),
                     known_devices(devices_)));
  }
}

// Rules out devices for reasons that do not depend on others.
void Chooser::judge_alone(Candidate& candidate) const {
  if (!candidate.why_not.empty()) return;
  if (!candidate.device->up) {
    candidate.why_not = "it is down, or has no link";
  } else if (too_short(*candidate.device)) {
    candidate.why_not = fmt::format("it carries packets of {} bytes only, and {} are needed",
                                    candidate.device->packet_bytes, most_.least_packet);
  } else if (!candidate.item) {
    candidate.why_not = "not among the NICs asked for";
  }
}

// Peers cannot be told such an address, and any interface has one. Beside another address of its
// NIC it may be used.
void Chooser::leave_out_lone_link_locals() {
  const auto lone = [&](const Candidate& candidate) {
    return std::none_of(candidates_.begin(), candidates_.end(), [&](const Candidate& other) {
      return other.open() && other.device->name == candidate.device->name &&
             !is_link_local(other.device->address);
    });
  };
  for (Candidate& candidate : candidates_) {
    const bool unasked = candidate.open() && wanted_[*candidate.item].text().empty();
    if (unasked && is_link_local(candidate.device->address) && lone(candidate)) {
      candidate.why_not = "a link-local address, and no other: used if it is named";
    }
  }
  const bool any = std::any_of(candidates_.begin(), candidates_.end(),
                               [](const Candidate& candidate) { return candidate.open(); });
  if (!any) fail("there is no NIC with an address that is not link-local: name one to use it");
}

// Whether it is internal to the host, and a device that is not matches the same item.
bool Chooser::is_beside_better(const Candidate& candidate) const {
  if (candidate.device->standing != Standing::kInside) return false;
  return std::any_of(candidates_.begin(), candidates_.end(), [&](const Candidate& other) {
    return other.open() && other.item == candidate.item && !other.device->loopback &&
           other.device->standing != Standing::kInside;
  });
}

// Rules out lesser devices that match only a broad item, where there are better ones.
void Chooser::leave_out_the_lesser() {
  const Device* outside = nullptr;  // and not the loopback
  const Device* bypassing = nullptr;
  for (const Candidate& candidate : candidates_) {
    if (!candidate.open()) continue;
    if (!candidate.device->loopback) outside = candidate.device;
    if (!through_kernel(*candidate.device)) bypassing = candidate.device;
  }
  for (Candidate& candidate : candidates_) {
    if (!candidate.open() || !wanted_[*candidate.item].broad()) continue;
    if (is_beside_better(candidate)) {
      candidate.why_not = fmt::format("{}: used if there is nothing else, or if it is named",
                                      candidate.device->nature);
    } else if (candidate.device->loopback && outside != nullptr) {
      candidate.why_not = "loopback is used only if there is nothing else";
    } else if (bypassing != nullptr && through_kernel(*candidate.device)) {
      candidate.why_not = fmt::format("{} bypasses the kernel", bypassing->name);
    }
  }
}

// Returns the remaining NICs, best first, each with its best address first.
std::vector<Nic> Chooser::nics() {
  std::vector<Nic> out;
  for (Candidate& candidate : candidates_) {
    if (!candidate.open()) continue;
    auto found = std::find_if(out.begin(), out.end(), [&](const Nic& nic) {
      return nic.front()->device->name == candidate.device->name;
    });
    if (found == out.end()) found = out.insert(out.end(), Nic{});
    found->push_back(&candidate);
  }
  for (Nic& nic : out) {
    std::stable_sort(nic.begin(), nic.end(), [](const Candidate* a, const Candidate* b) {
      return std::pair(*a->item, rank(*a)) < std::pair(*b->item, rank(*b));
    });
  }
  std::stable_sort(out.begin(), out.end(), comes_before);
  return out;
}

std::string enough(const std::vector<std::string>& names) {
  if (names.size() == 1) return fmt::format("one NIC is enough, and {} comes first", names.front());
  return fmt::format("{} NICs are enough: {} come first", names.size(), fmt::join(names, ", "));
}

// Takes each NIC's first address, then further ones in turn, so that a NIC with many leaves room
// for others.
void Chooser::take() {
  std::vector<Nic> used = nics();
  std::vector<std::string> names;
  for (const Nic& nic : used) {
    if (names.size() < most_.nics) names.push_back(nic.front()->device->name);
  }
  for (std::size_t i = names.size(); i < used.size(); ++i) {
    for (Candidate* candidate : used[i]) candidate->why_not = enough(names);
  }
  used.resize(names.size());
  for (Nic& nic : used) arrange(nic);
  const std::size_t to_come = most_.nics - used.size();
  std::size_t room = std::max(most_.devices - std::min(to_come, most_.devices), used.size());
  for (std::size_t turn = 0; turn < most_.addresses; ++turn) {
    for (const Nic& nic : used) {
      if (turn >= nic.size() || room == 0) continue;
      nic[turn]->chosen = true;
      --room;
    }
  }
  for (const Nic& nic : used) {
    for (const Candidate* candidate : nic) {
      if (candidate->chosen) choice_.chosen.push_back(*candidate->device);
    }
  }
}

// Orders the addresses: those that are meant, then the first of each rank, then the others. A
// link-local address beside others is of no use, unless it is meant.
void Chooser::arrange(Nic& nic) const {
  const std::string used = fmt::format("{} is used through {}", nic.front()->device->name,
                                       host_string(nic.front()->device->address));
  Nic firsts;
  Nic others;
  for (Candidate* candidate : nic) {
    candidate->why_not = used;  // if it is not chosen
    const int own = rank(*candidate);
    const bool meant = own == 0 || wanted_[*candidate->item].means_link_local();
    if (own == 3 && !firsts.empty() && !meant) continue;
    const bool again = std::any_of(firsts.begin(), firsts.end(),
                                   [&](const Candidate* one) { return rank(*one) == own; });
    (again && own != 0 ? others : firsts).push_back(candidate);
  }
  firsts.insert(firsts.end(), others.begin(), others.end());
  nic = std::move(firsts);
}

Choice Chooser::finish() {
  for (const Candidate& candidate : candidates_) {
    if (candidate.chosen) continue;
    choice_.not_chosen.push_back({*candidate.device, candidate.why_not.empty()
                                                         ? "not all that was asked for is there"
                                                         : candidate.why_not});
  }
  return std::move(choice_);
}

}  // namespace

Choice choose_devices(const std::vector<Device>& devices, const std::vector<std::string>& wanted,
                      const Most& most) {
  return Chooser(devices, wanted, most).choose();
}

std::size_t max_addresses(const std::string& driver) {
  constexpr std::size_t kMany = 8;
  return driver == "udp" || driver == "tcp" ? kMany : 1;
}

}  // namespace pullman::nic
