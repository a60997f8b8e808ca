// SPDX-License-Identifier: Apache-2.0
#include "core/base/interruption.h"

#include <gtest/gtest.h>

#include <atomic>

#include "core/base/parallel.h"
#include "core/tensor/variable.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

/// Sets the thread budget for one test.
class Threads {
 public:
  explicit Threads(int n) : before_(ThreadBudget()) { SetThreadBudget(n); }
  ~Threads() { SetThreadBudget(before_); }

 private:
  const int before_;
};

constexpr int64_t kItems = 1000;
constexpr double kItemNs = 1e6;

TEST(InterruptionTest, ALongLoopStopsWhenItsStepIsCancelled) {
  for (const int threads : {1, 4}) {
    const Threads budget(threads);
    Cancellation cancellation;
    const InterruptibleBy step(&cancellation);
    std::atomic<int64_t> done{0};
    ParallelFor(kItems, kItemNs, [&](int64_t begin, int64_t end) {
      done += end - begin;
      cancellation.Cancel(Cancelled("enough"));
    });
    EXPECT_TRUE(Interrupted());
    EXPECT_GT(done, 0);
    EXPECT_LT(done, kItems / 4) << threads << " threads";
  }
}

TEST(InterruptionTest, ALoopThatNobodyInterruptsDoesEveryItemOnceAndInOrder) {
  Cancellation cancellation;
  const InterruptibleBy step(&cancellation);
  int64_t next = 0;
  SerialFor(kItems, kItemNs, [&](int64_t begin, int64_t end) {
    EXPECT_EQ(begin, next);
    EXPECT_LE(end - begin, kItems / 10);
    next = end;
  });
  EXPECT_EQ(next, kItems);
}

TEST(InterruptionTest, ACancelledStepDoesNotTouchTheKernelsOfOthers) {
  Cancellation cancelled, other;
  cancelled.Cancel(Cancelled("enough"));
  EXPECT_FALSE(Interrupted());
  const InterruptibleBy outer(&cancelled);
  EXPECT_TRUE(Interrupted());
  {
    const InterruptibleBy inner(&other);
    EXPECT_FALSE(Interrupted());
  }
  EXPECT_TRUE(Interrupted());
}

TEST(InterruptionTest, AnUpdateOfAVariableRunsToItsEnd) {
  const Threads budget(4);
  Cancellation cancellation;
  const InterruptibleBy step(&cancellation);
  VariableResource variable(DType::kInt32, PartialShape());
  ASSERT_OK(variable.Assign(Tensor::Zeros(DType::kInt32, {kItems})));
  for (const bool whole : {true, false}) {
    const auto add_one = [&](Tensor* value) {
      ParallelFor(kItems, kItemNs, [&](int64_t begin, int64_t end) {
        cancellation.Cancel(Cancelled("enough"));
        for (int64_t i = begin; i < end; ++i) ++value->data<int32_t>()[i];
      });
      return OkStatus();
    };
    if (whole) {
      EXPECT_OK(variable.Modify([&](const Tensor&, Tensor* next) { return add_one(next); }));
    } else {
      EXPECT_OK(variable.ModifyInPlace(add_one));
    }
    for (const int32_t v : variable.Read().flat<int32_t>()) ASSERT_EQ(v, whole ? 1 : 2);
  }
}

}  // namespace
}  // namespace tenon
