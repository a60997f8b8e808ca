// SPDX-License-Identifier: Apache-2.0
#include "core/base/parallel.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <atomic>
#include <new>
#include <thread>
#include <vector>

namespace tenon {
namespace {

/// Sets the budget for one test.
class Budget {
 public:
  explicit Budget(int n) : before_(ThreadBudget()) { SetThreadBudget(n); }
  ~Budget() { SetThreadBudget(before_); }

 private:
  const int before_;
};

TEST(ParallelTest, EveryItemIsDoneOnce) {
  const Budget budget(4);
  for (const int64_t n : {0, 1, 2, 3, 7, 1000, 100001}) {
    std::vector<std::atomic<int>> count(n);
    ParallelFor(n, 1e6, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++count[i];
    });
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(count[i], 1) << "item " << i << " of " << n;
  }
}

TEST(ParallelTest, AnExceptionOfABodyReachesTheCaller) {
  for (const int threads : {1, 4}) {
    const Budget budget(threads);
    EXPECT_THROW(ParallelFor(8, 1e6,
                             [](int64_t begin, int64_t end) {
                               if (begin <= 7 && 7 < end) throw std::bad_alloc();
                             }),
                 std::bad_alloc);
  }
}

TEST(ParallelTest, LittleWorkStaysOnTheCallersThread) {
  const Budget budget(4);
  const auto me = std::this_thread::get_id();
  ParallelFor(100, 10, [&](int64_t begin, int64_t end) {
    EXPECT_EQ(std::this_thread::get_id(), me);
    EXPECT_EQ(begin, 0);
    EXPECT_EQ(end, 100);
  });
}

TEST(ParallelTest, ABudgetOfOneGivesNoExtraThreads) {
  const Budget budget(1);
  EXPECT_EQ(ExtraThreads(8).count(), 0);
  EXPECT_EQ(OpenMpTeam(1e9).size(), 1);
  const auto me = std::this_thread::get_id();
  ParallelFor(1000, 1e6, [&](int64_t, int64_t) { EXPECT_EQ(std::this_thread::get_id(), me); });
}

TEST(ParallelTest, ExtraAndBusyThreadsShareTheBudget) {
  const Budget budget(4);
  const BusyThread one, two;
  const ExtraThreads first(1);
  EXPECT_EQ(first.count(), 1);
  const ExtraThreads second(8);
  EXPECT_EQ(second.count(), 1);
  EXPECT_EQ(ExtraThreads(8).count(), 0);
}

TEST(ParallelTest, LentThreadsComeBack) {
  const Budget budget(3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ExtraThreads(8).count(), 2);
}

TEST(ParallelTest, ATeamIsNoLargerThanTheBudgetLeaves) {
  const Budget budget(3);
  const int before = omp_get_max_threads();
  {
    const ExtraThreads lent(1);
    const OpenMpTeam team(1e9);
    EXPECT_EQ(team.size(), 2);
    EXPECT_EQ(omp_get_max_threads(), 2);
  }
  EXPECT_EQ(omp_get_max_threads(), before);
}

TEST(ParallelTest, ALoopInsideALoopIsSerial) {
  const Budget budget(4);
  ParallelFor(4, 1e6, [&](int64_t, int64_t) {
    const auto me = std::this_thread::get_id();
    EXPECT_EQ(OpenMpTeam(1e9).size(), 1);
    EXPECT_EQ(omp_get_max_threads(), 1);
    ParallelFor(4, 1e6, [&](int64_t, int64_t) { EXPECT_EQ(std::this_thread::get_id(), me); });
  });
}

}  // namespace
}  // namespace tenon
