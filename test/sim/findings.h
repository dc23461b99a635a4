// What oracles found. Only the first finding is kept: it ends the run, and others follow from it.
#pragma once

#include <string>
#include <utility>

namespace pullman::sim {

class Findings {
 public:
  void report(std::string sentence) {
    if (first_.empty()) first_ = std::move(sentence);
  }
  bool any() const { return !first_.empty(); }
  const std::string& first() const { return first_; }

 private:
  std::string first_;
};

}  // namespace pullman::sim
