// The two halves of a soak: sends a plan, receives a plan and judges it. Either may find that the
// peer is gone; then it says why and stops.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plan.h"
#include "pullman/pullman.h"

namespace soak {

class Sender {
 public:
  Sender(pullman::Context& context, pullman::PeerId peer, std::vector<Message> plan);

  // Sends what there are free slots for.
  void pump();
  bool all_sent() const { return next_ == plan_.size(); }
  bool finished() const;  // and delivered, or failed
  // kOk as long as every send ended well.
  pullman::Status status() const;

 private:
  struct Slot {
    std::vector<std::byte> buffer;
    pullman::Request request;
  };

  pullman::Context& context_;
  pullman::PeerId peer_;
  std::vector<Message> plan_;
  std::unique_ptr<Slot[]> slots_;
  std::size_t next_ = 0;
};

// Half of its receives take anything, so that all comes through; the other half wait for one tag.
class Receiver {
 public:
  Receiver(pullman::Context& context, pullman::PeerId peer, std::uint64_t seed,
           std::vector<Message> plan, std::size_t largest);

  void pump();
  bool finished() const {
    return records_.size() == plan_.size() || status_ != pullman::Status::kOk;
  }
  pullman::Status status() const { return status_; }
  std::size_t received() const { return records_.size(); }

  // Takes back the receives that nothing matched.
  void cancel();

  // Empty if everything arrived once, in order within its tag, with the right contents; else a
  // sentence.
  std::string judge() const;
  // Which messages a peer may have failed to send that is gone.
  enum class Missing : std::uint8_t { kBehindTheLast, kAnywhere };
  // The same for what did arrive.
  std::string judge_part(Missing missing) const;

 private:
  struct Slot {
    std::vector<std::byte> buffer;
    pullman::Request request;
    std::uint64_t posted = 0;  // counts posts: within a tag, messages match in this order
  };
  struct Record {
    std::uint64_t posted = 0;
    pullman::Tag tag = 0;
    std::size_t size = 0;
    std::uint64_t hash = 0;
  };

  void post(std::size_t slot);
  bool take_what_came();
  void take(const Slot& slot);

  pullman::Context& context_;
  pullman::PeerId peer_;
  std::uint64_t seed_;
  std::vector<Message> plan_;
  Dice dice_;
  std::unique_ptr<Slot[]> slots_;
  std::vector<Record> records_;
  std::uint64_t posts_ = 0;
  pullman::Status status_ = pullman::Status::kOk;
};

}  // namespace soak
