// What is stuck in a job, by what its processes say of themselves and of each other. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "world/summary.h"

namespace stat_program {

// What has been heard of a job.
struct Job {
  unsigned size = 0;
  std::map<unsigned, pullman::world::Summary> answers{};  // by rank
  // What is known of ranks that do not answer, besides: a part of a sentence, by rank.
  std::map<unsigned, std::string> hints{};
};

enum class StuckBy {
  kSilent,   // the rank does not answer
  kGone,     // others say that it has ended
  kProgram,  // its program neither calls nor is called back; its thread answers
  kCall,     // it answers, and is waited for, and waits for nobody that is named
  kCycle,    // ranks wait for each other
  kRail,     // a rail is not up
};

// One thing that is stuck.
struct Verdict {
  StuckBy by = StuckBy::kSilent;
  unsigned rank = 0;                // which one it is
  unsigned peer = 0;                // kRail: the other end's rank, or kNoRank
  std::string rail{};               // kRail: which one
  pullman::world::Age since{};      // for how long; 0: not known
  std::vector<unsigned> waiting{};  // ranks that wait for it, or the cycle
  std::string sentence{};           // all of that
};

// Returns what is stuck, the cause before what follows from it; nothing if all goes on.
std::vector<Verdict> find_stuck(const Job& job);

const char* name(StuckBy by);

// Returns the ranks that do not answer.
std::vector<unsigned> silent_ranks(const Job& job);
// Returns those of them of which others say that they have closed their connections.
std::vector<unsigned> ended_ranks(const Job& job);

}  // namespace stat_program
