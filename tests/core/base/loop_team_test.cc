// SPDX-License-Identifier: Apache-2.0
#include "core/base/loop_team.h"

#include <gtest/gtest.h>
#include <immintrin.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "core/base/denormals.h"

namespace tenon::parallel_internal {
namespace {

using std::chrono::steady_clock;

constexpr auto kLimit = std::chrono::seconds(20);
constexpr double kLongNs = 1e9;  // a guess for which all helpers are woken

/// Waits until `done` or the limit.
template <typename Done>
bool Await(Done done) {
  for (const auto end = steady_clock::now() + kLimit; !done(); std::this_thread::yield()) {
    if (steady_clock::now() > end) return false;
  }
  return true;
}

/// A loop in which `threads` threads each hold a part at the same time. Helpers that came too late
/// before are left alone for a while, so that it may take more than one try.
bool SharedBy(int threads) {
  return Await([threads] {
    std::atomic<int> inside{0};
    std::atomic<bool> all{false};
    RunParts(threads, threads - 1, kLongNs, [&](int) {
      ++inside;
      const auto end = steady_clock::now() + std::chrono::milliseconds(200);
      while (inside < threads && steady_clock::now() < end) std::this_thread::yield();
      if (inside == threads) all = true;
    });
    return all.load();
  });
}

TEST(LoopTeamTest, EachPartIsDoneOnce) {
  for (const int helpers : {0, 1, 3}) {
    for (const int parts : {1, 2, 3, 17}) {
      for (const double part_ns : {1.0, kLongNs}) {
        std::vector<std::atomic<int>> done(parts);
        RunParts(parts, helpers, part_ns, [&](int part) { ++done[part]; });
        for (int i = 0; i < parts; ++i) EXPECT_EQ(done[i], 1) << "part " << i << " of " << parts;
      }
    }
  }
}

TEST(LoopTeamTest, HelpersTakePartsWhileTheCallerHasOne) {
  EXPECT_TRUE(SharedBy(2));
  EXPECT_TRUE(SharedBy(4));
}

TEST(LoopTeamTest, HelpersThatSleepAreWoken) {
  ASSERT_TRUE(SharedBy(2));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(SharedBy(2));
}

TEST(LoopTeamTest, NoMoreThreadsAreStartedThanAreAskedForAtOnce) {
  ASSERT_TRUE(SharedBy(4));
  const int before = NumHelpers();
  for (int i = 0; i < 100; ++i) RunParts(8, 3, kLongNs, [](int) {});
  EXPECT_EQ(NumHelpers(), before);
}

TEST(LoopTeamTest, NorForPartsThatOthersHaveTakenMeanwhile) {
  ASSERT_TRUE(SharedBy(2));
  for (int i = 0; i < 100; ++i) RunParts(8, 7, 1e6, [](int) {});
  EXPECT_LE(NumHelpers(), 7);
}

TEST(LoopTeamTest, ALoopEndsThoughNoHelperIsFree) {
  std::atomic<bool> release{false};
  std::atomic<int> held{0};
  std::thread other([&] {
    RunParts(2, 1, kLongNs, [&](int) {
      ++held;
      Await([&] { return release.load(); });
    });
  });
  ASSERT_TRUE(Await([&] { return held >= 1; }));
  std::atomic<int> done{0};
  RunParts(8, 1, kLongNs, [&](int) { ++done; });
  EXPECT_EQ(done, 8);
  release = true;
  other.join();
}

TEST(LoopTeamTest, ManyCallersAtOnceGetTheirOwnParts) {
  constexpr int kCallers = 6, kLoops = 2000;
  std::vector<std::thread> callers;
  std::atomic<int64_t> wrong{0};
  for (int c = 0; c < kCallers; ++c) {
    callers.emplace_back([c, &wrong] {
      for (int i = 0; i < kLoops; ++i) {
        // Written by the helpers without atomics: what they write is seen after the loop.
        std::vector<int> found(1 + (c + i) % 7, -1);
        const int parts = static_cast<int>(found.size());
        RunParts(parts, 2, i % 3 == 0 ? kLongNs : 1, [&](int part) { found[part] = c + i; });
        for (const int f : found) wrong += f == c + i ? 0 : 1;
      }
    });
  }
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(LoopTeamTest, HelpersTreatDenormalsAsTheCallerDoes) {
  ASSERT_TRUE(SharedBy(2));
  for (const bool flush : {true, false, true}) {
    std::atomic<int> other_ways{0};
    const auto look = [&](int) {
      volatile float smallest = 1e-38f;
      if ((smallest * 0.1f == 0) != flush) ++other_ways;
      const auto end = steady_clock::now() + std::chrono::milliseconds(1);
      while (steady_clock::now() < end) {
      }
    };
    if (flush) {
      const FlushDenormals flushed;
      RunParts(8, 1, kLongNs, look);
    } else {
      RunParts(8, 1, kLongNs, look);
    }
    EXPECT_EQ(other_ways, 0);
  }
}

}  // namespace
}  // namespace tenon::parallel_internal
