// SPDX-License-Identifier: Apache-2.0
//
// Ops at the limit of memory: each runs with ever more of it, until it has enough. Whichever of its
// allocations fails, it must say so and leave nothing behind.
#include "core/memory/memory_limit.h"

#include <gtest/gtest.h>

#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

struct LimitCase {
  std::string op;
  std::vector<Tensor> inputs;
  AttributeMap attrs = {};
  std::string variant = "";
  friend void PrintTo(const LimitCase& c, std::ostream* out) { *out << c.op; }
};

constexpr int64_t kMany = 100000;

Tensor LongText(size_t length) { return Tensor::Scalar(std::string(length, 'x')); }

Tensor Numbered(DType type, int64_t n) {
  Tensor t = Tensor::Zeros(type, {n});
  Dispatch(type, RealTypes(), [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < n; ++i) t.data<T>()[i] = static_cast<T>(static_cast<float>(i));
  });
  return t;
}

std::vector<LimitCase> Cases() {
  const Tensor count = Tensor::Vector<int32_t>({kMany});
  const Tensor numbers = Numbered(DType::kInt32, kMany);
  const Tensor floats = Numbered(DType::kFloat, kMany);
  const Tensor integers = Tensor::Zeros(DType::kInt32, {300, 300});
  const Tensor halves = Tensor::Zeros(DType::kHalf, {300, 300});
  const Tensor complex = Tensor::Zeros(DType::kComplex64, {1, 300, 300});
  const Tensor axis = Tensor::Scalar<int32_t>(0);
  Tensor texts(DType::kString, {2000});
  return {
      // Text, short and long.
      {"Fill", {Tensor::Vector<int32_t>({1000}), LongText(5000)}},
      {"Fill", {count, LongText(100)}, {}, "Short"},
      {"Tile",
       {Tensor::Vector<std::string>({std::string(3000, 'x')}), Tensor::Vector<int32_t>({1000})}},
      {"StringJoin", {texts, LongText(1000)}},
      {"Add", {texts, LongText(1000)}},
      {"AsString", {floats}},
      {"AsString", {texts}, {{"width", 1000}}, "Padded"},
      {"Concat", {axis, texts, texts}, {}, "Text"},
      {"GatherV2",
       {Tensor::Vector<std::string>({std::string(200, 'x')}), Tensor::Zeros(DType::kInt32, {10000}),
        axis}},
      {"RandomShuffle", {texts}, {{"seed", 1}}, "Text"},
      // Temporaries.
      {"MatMul", {halves, halves}},
      {"MatMul", {integers, integers}, {{"transpose_b", true}}, "Integers"},
      {"BatchMatMul", {complex, complex}, {{"adj_x", true}, {"adj_y", true}}},
      {"Unique", {numbers}},
      {"UniqueWithCounts", {floats}},
      {"Where", {numbers}},
      {"HistogramSummary", {Tensor::Scalar("tag"), floats}},
      {"RandomShuffle", {numbers}, {{"seed", 1}}},
      {"GatherNd", {floats, numbers.Reshaped(Shape{kMany, 1}).value()}},
      {"ScatterNd", {numbers.Reshaped(Shape{kMany, 1}).value(), floats, count}},
      {"SegmentSum", {floats, numbers}},
      {"LogSoftmax", {halves}},
      {"Cast", {floats}, {{"DstT", DType::kHalf}, {"Truncate", true}}},
      // Results.
      {"RandomUniform", {count}, {{"seed", 1}, {"dtype", DType::kFloat}}},
      {"Range", {axis, Tensor::Scalar<int32_t>(kMany), Tensor::Scalar<int32_t>(1)}},
      {"OneHot",
       {numbers, Tensor::Scalar<int32_t>(20), Tensor::Scalar(1.0f), Tensor::Scalar(0.0f)}},
      {"Transpose", {halves, Tensor::Vector<int32_t>({1, 0})}},
      {"Cumsum", {floats, axis}},
      {"Exp", {floats}},
  };
}

class OpsAtTheMemoryLimitTest : public ::testing::TestWithParam<LimitCase> {
 protected:
  ~OpsAtTheMemoryLimitTest() override { SetCpuMemoryLimit(DefaultCpuMemoryLimit()); }
};

INSTANTIATE_TEST_SUITE_P(Ops, OpsAtTheMemoryLimitTest, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.op + info.param.variant; });

TEST_P(OpsAtTheMemoryLimitTest, FailWithResourceExhaustedAndLeaveNothing) {
  const LimitCase& c = GetParam();
  // What threads have taken in small blocks and not yet told (see core/memory/counted_memory.h).
  constexpr int64_t kUntold = 256 << 10;
  const int64_t before = CpuAllocator().bytes_in_use();
  int refused = 0;
  bool enough = false;
  for (int64_t budget = 0; !enough; budget = budget * 5 / 4 + 4096) {
    ASSERT_LT(budget, 1 << 30);
    SetCpuMemoryLimit(before + budget);
    {
      const OpResult result = RunOp(c.op, c.inputs, c.attrs);
      enough = result.status.ok();
      if (!enough) {
        ++refused;
        ASSERT_THAT(result.status, IsError(StatusCode::kResourceExhausted, "out of")) << budget;
      }
    }
    SetCpuMemoryLimit(DefaultCpuMemoryLimit());
    ASSERT_LT(std::abs(CpuAllocator().bytes_in_use() - before), kUntold) << budget;
  }
  EXPECT_GT(refused, 3);
}

TEST(TensorArrayAtTheMemoryLimitTest, ItsElementsAreCounted) {
  SetCpuMemoryLimit(CpuAllocator().bytes_in_use() + (64 << 20));
  const auto make = [](int32_t size) {
    return RunOp("TensorArrayV3", {Tensor::Scalar<int32_t>(size)},
                 {{"dtype", DType::kFloat}, {"dynamic_size", true}})
        .status;
  };
  EXPECT_THAT(make(1 << 28), IsError(StatusCode::kResourceExhausted, "out of memory"));
  EXPECT_OK(make(1000));
  SetCpuMemoryLimit(DefaultCpuMemoryLimit());
}

}  // namespace
}  // namespace tenon::testing
