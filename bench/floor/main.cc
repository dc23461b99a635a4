// What the kernel alone costs, for what a protocol over it cannot do without: tools/floor.py runs
// it.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "latency.h"
#include "line.h"
#include "stream.h"
#include "window.h"

int main(int argc, char** argv) {
  CLI::App app("Bare datagrams, and what a protocol adds to them at least");
  app.require_subcommand(1);
  bare::Latency latency;
  bare::Stream stream;
  bare::Window window;
  const auto add = [&app](const char* name, const char* what, auto& options, auto run) {
    CLI::App* verb = app.add_subcommand(name, what);
    verb->add_option("own", options.own, "own address")->required();
    verb->add_option("peer", options.peer, "the other end's")->required();
    verb->add_option("--rounds", options.rounds);
    verb->callback([&options, run] { run(options); });
    return verb;
  };
  for (CLI::App* verb : {add("answer", "half a round trip", latency, bare::answer),
                         add("ask", "half a round trip", latency, bare::ask)}) {
    verb->add_option("--bytes", latency.bytes);
  }
  add("collect", "windows of small messages", window, bare::collect);
  add("fill", "windows of small messages", window, bare::fill);
  bare::Line line;
  CLI::App* pass = app.add_subcommand("pass", "a line of the cache between two processors");
  pass->add_option("--rounds", line.rounds)->check(CLI::PositiveNumber);
  pass->callback([&line] { bare::pass(line); });
  CLI::App* take = app.add_subcommand("take", "a stream's receiver");
  CLI::App* pour = app.add_subcommand("pour", "a stream's sender");
  for (CLI::App* verb : {take, pour})
    verb->add_option("own", stream.own, "own address")->required();
  take->add_option("--seconds", stream.seconds);
  pour->add_option("peer", stream.peer, "the receiver's address")->required();
  pour->add_option("--segments", stream.segments, "1 or 2 for each packet");
  pour->add_flag("--copy", stream.copy, "2, which are copied together first");
  take->callback([&stream] { bare::take(stream); });
  pour->callback([&stream] { bare::pour(stream); });
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "floor: %s\n", error.what());
    return 1;
  }
}
