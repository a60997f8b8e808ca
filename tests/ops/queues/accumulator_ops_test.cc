// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <future>
#include <thread>

#include "ops/array/array_ops.h"
#include "ops/queues/queues_ops.h"
#include "ops/register.h"
#include "runtime/session/local_session.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

class AccumulatorOpsTest : public ::testing::Test {
 protected:
  AccumulatorOpsTest() : building_(graph_) {}

  void Open() {
    auto session = MakeLocalSession(graph_);
    ASSERT_OK(session);
    session_ = *std::move(session);
  }
  Status Add(int64_t step, const Tensor& gradient) {
    return session_->Run({{step_, step}, {gradient_, gradient}}, {}, {add_}).status();
  }
  StatusOr<std::vector<double>> Take(int32_t n, std::chrono::milliseconds timeout = 0ms) {
    TENON_ASSIGN_OR_RETURN(const auto values,
                           session_->Run({{n_, n}}, {take_}, {}, {.timeout = timeout}));
    return Numbers(values[0]);
  }

  Graph graph_{AllOps()};
  GraphBuilding building_;
  Output step_ = Placeholder(DType::kInt64, Shape{}), n_ = Placeholder(DType::kInt32, Shape{});
  Output gradient_ = Placeholder(DType::kFloat), take_, count_;
  Node* add_ = nullptr;
  std::unique_ptr<Session> session_;
};

class DenseAccumulatorTest : public AccumulatorOpsTest {
 protected:
  void Use(const char* reduction) {
    const Output handle = ResourceConditionalAccumulator(
        DType::kFloat, {-1}, {.reduction_type = reduction, .name = "sum"});
    add_ = ResourceAccumulatorApplyGradient(handle, step_, gradient_);
    take_ = ResourceAccumulatorTakeGradient(handle, n_, DType::kFloat);
    count_ = ResourceAccumulatorNumAccumulated(handle);
    set_step_ = ResourceAccumulatorSetGlobalStep(handle, step_);
    Open();
  }
  int Count() { return static_cast<int>(Numbers((*session_->Run({}, {count_}))[0])[0]); }

  Node* set_step_ = nullptr;
};

TEST_F(DenseAccumulatorTest, GivesMeansOfAllThatAreThere) {
  Use("MEAN");
  ASSERT_OK(Add(0, Tensor::Vector<float>({1, 2})));
  ASSERT_OK(Add(3, Tensor::Vector<float>({3, 5})));
  EXPECT_EQ(Count(), 2);
  EXPECT_THAT(*Take(1), ElementsAre(2, 3.5));
  EXPECT_EQ(Count(), 0);
  // The step is 1 now, and the shape that of the next gradient.
  ASSERT_OK(Add(0, Tensor::Vector<float>({100, 100})));
  EXPECT_EQ(Count(), 0);
  ASSERT_OK(Add(1, Tensor::Vector<float>({7})));
  EXPECT_THAT(*Take(1), ElementsAre(7));
}

TEST_F(DenseAccumulatorTest, GivesSumsWhenAsked) {
  Use("SUM");
  for (const float x : {1.0f, 2.0f, 4.0f}) ASSERT_OK(Add(0, Tensor::Vector<float>({x})));
  EXPECT_THAT(*Take(3), ElementsAre(7));
}

TEST_F(DenseAccumulatorTest, TakesWaitForEnoughGradientsOfTheStep) {
  Use("MEAN");
  ASSERT_OK(session_->Run({{step_, int64_t{5}}}, {}, {set_step_}));
  auto taken = std::async(std::launch::async, [&] { return Take(2); });
  ASSERT_OK(Add(4, Tensor::Vector<float>({9})));
  ASSERT_OK(Add(5, Tensor::Vector<float>({1})));
  EXPECT_EQ(taken.wait_for(30ms), std::future_status::timeout);
  ASSERT_OK(Add(6, Tensor::Vector<float>({3})));
  EXPECT_THAT(*taken.get(), ElementsAre(2));
}

TEST_F(DenseAccumulatorTest, ATakeThatGivesUpTakesNothing) {
  Use("MEAN");
  ASSERT_OK(Add(0, Tensor::Vector<float>({4})));
  EXPECT_THAT(Take(2, 30ms), IsError(StatusCode::kDeadlineExceeded, ""));
  EXPECT_THAT(*Take(1), ElementsAre(4));
}

TEST_F(DenseAccumulatorTest, TheGradientThatWasAddedStays) {
  Use("SUM");
  const Tensor first = Tensor::Vector<float>({1, 1});
  ASSERT_OK(Add(0, first));
  ASSERT_OK(Add(0, Tensor::Vector<float>({2, 2})));
  EXPECT_THAT(*Take(2), ElementsAre(3, 3));
  EXPECT_THAT(Numbers(first), ElementsAre(1, 1));
}

TEST_F(DenseAccumulatorTest, WhatDoesNotFitIsRefused) {
  const Output other = ResourceConditionalAccumulator(DType::kDouble, {2}, {.shared_name = "sum"});
  Use("MEAN");
  EXPECT_THAT(Add(0, Tensor::Of<float>({1, 1}, {1})),
              IsError(StatusCode::kInvalidArgument, "Shape mismatch: expected [?], got [1,1]"));
  ASSERT_OK(Add(0, Tensor::Vector<float>({1, 2})));
  EXPECT_THAT(Add(0, Tensor::Vector<float>({1, 2, 3})),
              IsError(StatusCode::kInvalidArgument, "Shape mismatch: expected [2], got [3]"));
  EXPECT_EQ(Count(), 1);
  EXPECT_THAT(Take(0), IsError(StatusCode::kInvalidArgument, "must be positive"));
  EXPECT_THAT(session_->Run({}, {other}),
              IsError(StatusCode::kInvalidArgument,
                      "Shared conditional accumulator 'sum' is a ResourceConditionalAccumulator"));
}

class SparseAccumulatorTest : public AccumulatorOpsTest {
 protected:
  void Use(const char* reduction, const PartialShape& shape) {
    const Output handle = SparseConditionalAccumulator(
        DType::kFloat, shape, {.reduction_type = reduction, .name = "sum"});
    add_ = SparseAccumulatorApplyGradient(handle, step_, indices_, gradient_, shape_, true);
    add_any_ = SparseAccumulatorApplyGradient(handle, step_, indices_, gradient_, shape_, false);
    add_dense_ = AccumulatorApplyGradient(handle, step_, gradient_);
    take_ = AccumulatorTakeGradient(handle, n_, DType::kFloat);
    sum_ = SparseAccumulatorTakeGradient(handle, n_, DType::kFloat);
    count_ = AccumulatorNumAccumulated(handle);
    Open();
  }
  /// Adds a gradient, of known shape when there is one.
  Status Add(const std::vector<int64_t>& indices, const Tensor& values,
             const std::vector<int64_t>& shape = {}) {
    return session_
        ->Run({{step_, int64_t{0}},
               {indices_, Tensor::Vector(indices)},
               {gradient_, values},
               {shape_, Tensor::Vector(shape)}},
              {}, {shape.empty() ? add_any_ : add_})
        .status();
  }
  /// Indices, values and shape, one after the other.
  std::vector<std::vector<double>> TakeAll(int32_t n) {
    const auto values = session_->Run({{n_, n}}, {sum_.indices, sum_.values, sum_.shape});
    EXPECT_TRUE(values.ok()) << values.status();
    if (!values.ok()) return {};
    return {Numbers((*values)[0]), Numbers((*values)[1]), Numbers((*values)[2])};
  }

  Output indices_ = Placeholder(DType::kInt64), shape_ = Placeholder(DType::kInt64);
  Node *add_any_ = nullptr, *add_dense_ = nullptr;
  SparseAccumulatorTakeGradientOutputs sum_;
};

TEST_F(SparseAccumulatorTest, TheMeanOfARowIsOverTheGradientsThatHaveIt) {
  Use("MEAN", {8, 2});
  ASSERT_OK(Add({1, 4}, Tensor::Of<float>({2, 2}, {1, 2, 3, 4}), {8, 2}));
  ASSERT_OK(Add({0, 4}, Tensor::Of<float>({2, 2}, {5, 6, 7, 8})));
  ASSERT_OK(Add({}, Tensor(DType::kFloat, {0, 2})));
  EXPECT_THAT(TakeAll(3),
              ElementsAre(ElementsAre(0, 1, 4), ElementsAre(5, 6, 1, 2, 5, 6), ElementsAre(8, 2)));
}

TEST_F(SparseAccumulatorTest, RowsInAnyOrderAndTwiceAreAddedUp) {
  Use("SUM", {});
  ASSERT_OK(Add({7, 2, 7}, Tensor::Of<float>({3, 1}, {1, 2, 3})));
  ASSERT_OK(Add({2}, Tensor::Of<float>({1, 1}, {10})));
  EXPECT_THAT(TakeAll(2), ElementsAre(ElementsAre(2, 7), ElementsAre(12, 4), ElementsAre(-1, 1)));
}

TEST_F(SparseAccumulatorTest, AfterATakeItIsEmpty) {
  Use("SUM", {4, 1});
  for (int step = 0; step < 2; ++step) {
    ASSERT_OK(session_->Run({{step_, int64_t{step}},
                             {indices_, Tensor::Vector<int64_t>({step})},
                             {gradient_, Tensor::Of<float>({1, 1}, {1})},
                             {shape_, Tensor::Vector<int64_t>({4, 1})}},
                            {}, {add_}));
    EXPECT_THAT(TakeAll(1), ElementsAre(ElementsAre(step), ElementsAre(1), ElementsAre(4, 1)));
  }
}

TEST_F(SparseAccumulatorTest, WhatDoesNotFitIsRefused) {
  Use("SUM", {4, 2});
  const auto wrong = [&](const std::vector<int64_t>& indices, const Shape& values,
                         const std::vector<int64_t>& shape, std::string_view message) {
    EXPECT_THAT(Add(indices, Tensor::Zeros(DType::kFloat, values), shape),
                IsError(StatusCode::kInvalidArgument, message));
  };
  wrong({1, 2}, {3, 2}, {}, "Expected 2 non-empty input values, got 3");
  wrong({1}, {}, {}, "Values cannot be 0-dimensional.");
  wrong({1}, {1, 3}, {}, "expected values dim 1 to be 2, got 3");
  wrong({1}, {1, 2}, {5, 2}, "expected shape dim 0 to be 4, got 5");
  wrong({1}, {1, 2}, {4}, "expected shape rank at least 2, got 1");
  wrong({4}, {1, 2}, {}, "index of slice 0 exceeded limits of shape; index is 4 exceeded 4");
  wrong({-1}, {1, 2}, {}, "the index of slice 0 must be at least 0, found -1");
  EXPECT_THAT(Numbers((*session_->Run({}, {count_}))[0]), ElementsAre(0));
}

TEST_F(SparseAccumulatorTest, AShapeThatIsNotKnownIsNotLookedAt) {
  Use("SUM", {4, 1});
  ASSERT_OK(session_->Run({{step_, int64_t{0}},
                           {indices_, Tensor::Vector<int64_t>({3})},
                           {gradient_, Tensor::Of<float>({1, 1}, {5})},
                           {shape_, Tensor::Vector<int64_t>({9, 9})}},
                          {}, {add_any_}));
  EXPECT_THAT(TakeAll(1), ElementsAre(ElementsAre(3), ElementsAre(5), ElementsAre(4, 1)));
}

TEST_F(SparseAccumulatorTest, OpsOfDenseOnesRefuseIt) {
  Use("SUM", {4, 1});
  const Status added =
      session_->Run({{step_, int64_t{0}}, {gradient_, 1.0f}}, {}, {add_dense_}).status();
  EXPECT_THAT(added, IsError(StatusCode::kInvalidArgument, "is of sparse gradients, wanted"));
  EXPECT_THAT(Take(1), IsError(StatusCode::kInvalidArgument, "is of sparse gradients, wanted"));
}

TEST_F(SparseAccumulatorTest, TheShapeMayBeThatOfTheFirstDimensionsOnly) {
  Use("SUM", {4, 2});
  ASSERT_OK(Add({1}, Tensor::Of<float>({1, 2, 2}, {1, 2, 3, 4})));
  EXPECT_THAT(Add({1}, Tensor::Of<float>({1, 2}, {1, 2})),
              IsError(StatusCode::kInvalidArgument, "expected values rank 3, got 2"));
  EXPECT_THAT(TakeAll(1),
              ElementsAre(ElementsAre(1), ElementsAre(1, 2, 3, 4), ElementsAre(4, 2, 2)));
}

}  // namespace
}  // namespace tenon::testing
