// SPDX-License-Identifier: Apache-2.0
// Training in step, and the end of its job, under thousands of schedules of one queue of events:
// messages are lost, doubled and reordered, tasks die, halt and come again. A failure prints
// TENON_SEED=<seed>, which runs that schedule alone and shows it; TENON_SEED=<first>-<last> runs a
// range.
#include "tests/train/simulated_training.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "core/base/strings.h"

namespace tenon::testing {
namespace {

constexpr uint64_t kSchedules = 10000;

struct Seeds {
  uint64_t first = 1, last = kSchedules;
};

Seeds SeedsToRun() {
  Seeds seeds;
  if (const char* const text = std::getenv("TENON_SEED")) {
    unsigned long long first = 0, last = 0;
    const int read = std::sscanf(text, "%llu-%llu", &first, &last);
    if (read >= 1) seeds = {first, read == 2 ? last : first};
  }
  return seeds;
}

TEST(SimulatedTrainingTest, NoScheduleBreaksAnInvariant) {
  const Seeds seeds = SeedsToRun();
  uint64_t ended_well = 0, updates = 0;
  for (uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
    const bool is_alone = seeds.first == seeds.last;
    const SimulatedOutcome outcome = RunSimulatedTraining(seed, PlantedFault::kNone, is_alone);
    if (is_alone) std::printf("%s", outcome.log.c_str());
    ASSERT_EQ(outcome.violation, "") << "TENON_SEED=" << seed;
    ended_well += outcome.ended_well;
    updates += outcome.updates;
  }
  if (seeds.last - seeds.first < 100) return;
  // Schedules in which nothing can be trained prove nothing.
  EXPECT_GT(ended_well, (seeds.last - seeds.first) / 2);
  EXPECT_GT(updates, seeds.last - seeds.first);
}

TEST(SimulatedTrainingTest, AScheduleFollowsFromItsSeed) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const std::string log = RunSimulatedTraining(seed, PlantedFault::kNone, true).log;
    EXPECT_EQ(RunSimulatedTraining(seed, PlantedFault::kNone, true).log, log);
  }
}

struct Planted {
  PlantedFault fault;
  const char* name;
  const char* violation;  // what is to be said of it
};

class PlantedFaultsTest : public ::testing::TestWithParam<Planted> {};

TEST_P(PlantedFaultsTest, IsFound) {
  for (uint64_t seed = 1; seed <= kSchedules; ++seed) {
    const std::string found = RunSimulatedTraining(seed, GetParam().fault).violation;
    if (found.find(GetParam().violation) == std::string::npos) continue;
    std::printf("schedule %llu: %s\n", static_cast<unsigned long long>(seed), found.c_str());
    return;
  }
  FAIL() << "none of " << kSchedules << " schedules shows it";
}

INSTANTIATE_TEST_SUITE_P(
    All, PlantedFaultsTest,
    ::testing::Values(
        Planted{PlantedFault::kReportStands, "ReportStands", "the job ends though "},
        Planted{PlantedFault::kSignalEndsTraining, "SignalEndsTraining",
                "training is said to be over at step "},
        Planted{PlantedFault::kUpdateIsRepeated, "UpdateIsRepeated", "is made of variables of"},
        Planted{PlantedFault::kDoneIsSaidOnce, "DoneIsSaidOnce", "it does not end"},
        Planted{PlantedFault::kNobodyIsLost, "NobodyIsLost", "which is dead"},
        Planted{PlantedFault::kEndIsNotRecorded, "EndIsNotRecorded", "that has ended well"},
        Planted{PlantedFault::kSilenceIsLife, "SilenceIsLife", "does not say so"},
        Planted{PlantedFault::kEpochsAreIgnored, "EpochsAreIgnored", "lacks gradients"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tenon::testing
