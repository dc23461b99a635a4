// The options --key and --security of programs that talk to other processes.
#pragma once

#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace perf {

struct KeyOptions {
  std::string key;       // words that the key is made of; empty: as the environment says
  std::string security;  // empty: as the environment says

  bool given() const { return !key.empty() || !security.empty(); }
  // Neither can be combined with `other`, if it is not null.
  void add_to(CLI::App& app, CLI::Option* other = nullptr);
  // Makes contexts follow the command line where it says something, else the environment.
  void apply() const;
};

}  // namespace perf
