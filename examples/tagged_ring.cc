// N processes in a ring pass a token; its tag counts the hops. Start one per address, in any order:
//
//   tagged_ring 0 10.0.0.1:7100 10.0.0.2:7100 10.0.0.3:7100      on the first machine
//   tagged_ring 1 10.0.0.1:7100 10.0.0.2:7100 10.0.0.3:7100      on the second, and so on
//
// Each listens at its own address of the list. After ten times round the token is back at the
// first.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include "pullman/pullman.h"

namespace {

constexpr pullman::Tag kTimesRound = 10;

void finish(pullman::Context& context, pullman::Request& request) {
  const pullman::Status status = context.wait(request);
  if (status != pullman::Status::kOk) throw pullman::Error(status, pullman::to_sentence(status));
}

// Opens the NIC that has `address` ("HOST:PORT"), at that port.
pullman::Config at(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  pullman::Config config = pullman::Config::from_environment();
  config.nics = {address.substr(0, colon)};
  config.port = static_cast<std::uint16_t>(std::atoi(address.c_str() + colon + 1));
  return config;
}

std::uint64_t run(std::size_t rank, std::size_t count, char** addresses) {
  pullman::Context context(at(addresses[rank]));
  const pullman::PeerId next = context.connect(addresses[(rank + 1) % count]);
  const pullman::Tag last_hop = kTimesRound * count;
  std::uint64_t token = 0;  // everyone adds its rank
  pullman::Request request;
  if (rank == 0) {
    context.send(next, 1, std::as_bytes(std::span(&token, 1)), request);
    finish(context, request);
  }
  // Process `rank` receives hops rank, rank + count, ...; the first one receives the last hop of a
  // lap.
  for (pullman::Tag hop = rank == 0 ? count : rank; hop <= last_hop; hop += count) {
    context.receive(pullman::kAnyPeer, hop, 0, std::as_writable_bytes(std::span(&token, 1)),
                    request);
    finish(context, request);
    token += rank;
    if (hop == last_hop) break;
    context.send(next, hop + 1, std::as_bytes(std::span(&token, 1)), request);
    finish(context, request);
  }
  context.close();
  return token;
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t count = argc < 4 ? 0 : static_cast<std::size_t>(argc) - 2;
  const std::size_t rank = count == 0 ? 0 : std::strtoul(argv[1], nullptr, 10);
  if (count == 0 || rank >= count) {
    std::fprintf(stderr, "usage: tagged_ring RANK ADDRESS ADDRESS...   (RANK counts from 0)\n");
    return 2;
  }
  try {
    const std::uint64_t token = run(rank, count, argv + 2);
    if (rank == 0) std::printf("the token came round %d times: %lu\n", int{kTimesRound}, token);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tagged_ring: %s\n", error.what());
    return 1;
  }
}
