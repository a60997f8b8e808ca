// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "tests/testing/op_runner.h"

namespace tenon::testing {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// The sum of `x` over the axes in `mask`, one element after the other, in double.
std::vector<double> NaiveSum(const Tensor& x, int mask, int64_t outputs) {
  std::vector<double> sums(outputs);
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    int64_t rest = i, place = 0, stride = 1;
    for (int d = x.rank() - 1; d >= 0; --d) {
      const int64_t at = rest % x.dim(d);
      rest /= x.dim(d);
      if (mask >> d & 1) continue;
      place += at * stride;
      stride *= x.dim(d);
    }
    sums[place] += x.data<float>()[i];
  }
  return sums;
}

TEST(ReductionTest, SumsOverAnyAxesAgreeWithElementByElement) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    DimVector dims(random() % 5);
    for (int64_t& d : dims) d = random() % 25 == 0 ? 0 : 1 + random() % (round % 50 == 0 ? 40 : 6);
    const Shape shape(dims);
    const Tensor x = Sample(DType::kFloat, shape, -1, 1, round);
    const int mask = dims.empty() ? 0 : static_cast<int>(random() % (1u << dims.size()));
    std::vector<int32_t> axes;
    for (size_t d = 0; d < dims.size(); ++d) {
      const int from_end = random() % 2 == 0 ? 0 : shape.rank();
      if (mask >> d & 1) axes.push_back(static_cast<int32_t>(d) - from_end);
    }
    const Tensor y = RunOpOrDie("Sum", {x, Tensor::Vector(axes)});
    const std::vector<double> wanted = NaiveSum(x, mask, y.num_elements());
    for (int64_t i = 0; i < y.num_elements(); ++i) {
      ASSERT_NEAR(y.data<float>()[i], wanted[i], 1e-5 * (1 + std::fabs(wanted[i])))
          << shape.ToString() << " mask " << mask;
    }
  }
}

TEST(ReductionTest, ALongSumOfFloatsIsAccurate) {
  const int64_t n = 3'000'000;
  Tensor x(DType::kFloat, {n});
  for (int64_t i = 0; i < n; ++i) x.data<float>()[i] = 0.1f;
  const double wanted = static_cast<double>(0.1f) * n;
  EXPECT_NEAR(*RunOpOrDie("Sum", {x, Tensor::Vector<int32_t>({0})}).data<float>(), wanted,
              wanted * 1e-7);
  const Tensor columns = *x.Reshaped({n / 3, 3});
  const Tensor sums = RunOpOrDie("Sum", {columns, Tensor::Vector<int32_t>({0})});
  for (const float s : sums.flat<float>()) EXPECT_NEAR(s, wanted / 3, wanted * 1e-7);
}

TEST(ReductionTest, OfNothingIsTheNeutralElement) {
  const Tensor x(DType::kFloat, {0, 2}), axes = Tensor::Vector<int32_t>({0});
  const auto first = [&](const char* op) { return RunOpOrDie(op, {x, axes}).data<float>()[0]; };
  EXPECT_EQ(first("Sum"), 0);
  EXPECT_EQ(first("Prod"), 1);
  EXPECT_EQ(first("Max"), -kInf);
  EXPECT_EQ(first("Min"), kInf);
  EXPECT_TRUE(std::isnan(first("Mean")));
  const Tensor none(DType::kBool, {0});
  EXPECT_TRUE(*RunOpOrDie("All", {none, axes}).data<bool>());
  EXPECT_FALSE(*RunOpOrDie("Any", {none, axes}).data<bool>());
}

TEST(ReductionTest, NoAxesLeaveTheInput) {
  const Tensor x = Sample(DType::kFloat, {2, 3}, -1, 1, 1);
  for (const char* op : {"Sum", "Mean", "Prod", "Max", "Min"}) {
    EXPECT_TRUE(RunOpOrDie(op, {x, Tensor(DType::kInt32, {0})}).Equals(x)) << op;
  }
}

TEST(ReductionTest, NanWinsInMaxAndMinOfAnyLength) {
  for (const int64_t n : {3, 100}) {
    Tensor x = Sample(DType::kFloat, {n}, -1, 1, 1);
    x.data<float>()[n / 2] = kNan;
    for (const char* op : {"Max", "Min"}) {
      EXPECT_TRUE(std::isnan(*RunOpOrDie(op, {x, Tensor::Scalar(0)}).data<float>())) << op << n;
    }
  }
}

TEST(ReductionTest, AxesOutOfRangeOrTwiceAreErrors) {
  const Tensor x(DType::kFloat, {2, 3});
  for (const std::vector<int32_t>& axes : {std::vector<int32_t>{2}, {-3}, {0, 0}, {1, -1}}) {
    for (const bool hidden : {false, true}) {
      EXPECT_EQ(RunOp("Sum", {x, Tensor::Vector(axes)}, {}, hidden).status.code(),
                StatusCode::kInvalidArgument);
    }
  }
}

TEST(ReductionTest, ArgMaxTakesTheFirstOfEqualsAndPassesOverNan) {
  const auto arg_max = [](std::initializer_list<float> values) {
    return *RunOpOrDie("ArgMax", {Tensor::Vector<float>(values), Tensor::Scalar(0)})
                .data<int64_t>();
  };
  EXPECT_EQ(arg_max({1, 3, 3}), 1);
  EXPECT_EQ(arg_max({1, kNan, 3}), 2);
  EXPECT_EQ(arg_max({-kInf, -kInf}), 0);
  EXPECT_EQ(RunOpOrDie("ArgMin", {Tensor::Vector<float>({1, 0, 0}), Tensor::Scalar(0)},
                       {{"output_type", DType::kInt32}})
                .data<int32_t>()[0],
            1);
}

TEST(ReductionTest, SegmentSumsCheckTheirIds) {
  const Tensor x = Sample(DType::kFloat, {3, 2}, -1, 1, 1);
  const auto code = [&](std::initializer_list<int32_t> ids) {
    return RunOp("SegmentSum", {x, Tensor::Vector<int32_t>(ids)}).status.code();
  };
  EXPECT_EQ(code({0, 1, 1}), StatusCode::kOk);
  EXPECT_EQ(code({1, 0, 1}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({-1, 0, 1}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({0, 1}), StatusCode::kInvalidArgument);
  const OpResult r = RunOp("UnsortedSegmentSum",
                           {x, Tensor::Vector<int32_t>({0, 5, 1}), Tensor::Scalar<int32_t>(2)});
  EXPECT_EQ(Message(r.status), "segment_ids[1] = 5 is out of range [0, 2)");
}

}  // namespace
}  // namespace tenon::testing
