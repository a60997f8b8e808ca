// SPDX-License-Identifier: Apache-2.0
#include "ops/math/gemms.h"

#include <gtest/gtest.h>

#include <random>

#include "core/base/cancellation.h"
#include "core/base/interruption.h"
#include "ops/elements.h"
#include "ops/maths.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

/// Matrices that lie `step` elements apart: all of `count`, or the same one when step is 0.
Tensor Matrices(DType type, int64_t count, int64_t step, int64_t size, uint64_t seed) {
  return Sample(type, Shape{step == 0 ? size : count * step}, -3, 3, seed);
}

void ExpectClose(const Tensor& found, const Tensor& wanted, double tolerance) {
  Dispatch(wanted.dtype(), NumericTypes(), [&]<typename T>(T) {
    for (int64_t i = 0; i < wanted.num_elements(); ++i) {
      const auto difference = static_cast<ComputeType<T>>(found.data<T>()[i]) -
                              static_cast<ComputeType<T>>(wanted.data<T>()[i]);
      if constexpr (std::is_integral_v<T>) {
        ASSERT_EQ(difference, 0) << i;
      } else {
        ASSERT_LE(std::abs(difference), tolerance) << i;
      }
    }
  });
}

double ToleranceOf(DType type) {
  if (type == DType::kBFloat16) return 2;
  if (type == DType::kHalf) return 0.25;
  return type == DType::kFloat || type == DType::kComplex64 ? 1e-4 : 1e-11;
}

TEST(GemmsTest, ManyProductsAreThoseOfOneProductEach) {
  std::mt19937 random(7);
  constexpr int64_t kCount = 5;
  for (const DType type : DTypesOf(NumericTypes())) {
    for (int round = 0; round < 120; ++round) {
      // Each dimension is often 1, and the product on either side of what is still tiny.
      const auto size = [&] { return random() % 3 == 0 ? 1 : 1 + random() % 30; };
      const GemmShape shape{.m = static_cast<int64_t>(size()),
                            .n = static_cast<int64_t>(size()),
                            .k = static_cast<int64_t>(size()),
                            .transpose_a = (round & 1) != 0,
                            .transpose_b = (round & 2) != 0};
      const int64_t a_size = shape.m * shape.k, b_size = shape.k * shape.n;
      const int64_t a_step = round % 5 == 0 ? 0 : a_size + round % 3;
      const int64_t b_step = round % 7 == 0 ? 0 : b_size;
      const Tensor a = Matrices(type, kCount, a_step, a_size, round);
      const Tensor b = Matrices(type, kCount, b_step, b_size, round + 1);
      Tensor many(type, {kCount, shape.m, shape.n}), single(type, {kCount, shape.m, shape.n});
      ASSERT_OK(ParallelGemms(type, shape,
                              {.a = a.raw_data(),
                               .a_step = a_step,
                               .b = b.raw_data(),
                               .b_step = b_step,
                               .c = many.raw_data(),
                               .count = kCount}));
      for (int64_t i = 0; i < kCount; ++i) {
        ASSERT_OK(Gemm(type, shape, ElementAt(a, i * a_step), ElementAt(b, i * b_step),
                       ElementAt(single, i * shape.m * shape.n)));
      }
      SCOPED_TRACE(StrCat(ToString(type), " ", shape.m, "x", shape.k, "x", shape.n, " ",
                          shape.transpose_a, shape.transpose_b));
      ExpectClose(many, single, ToleranceOf(type));
    }
  }
}

TEST(GemmsTest, AnInterruptedRunIsLeftUnfinished) {
  constexpr int64_t kCount = 100000;
  const Tensor a = Tensor::Of<float>({1, 1}, {1});
  Tensor c(DType::kFloat, {kCount});
  ZeroElements(&c);
  Cancellation cancellation;
  cancellation.Cancel(Cancelled("enough"));
  const InterruptibleBy interruption(&cancellation);
  ASSERT_OK(Gemms(DType::kFloat, {.m = 1, .n = 1, .k = 1},
                  {.a = a.raw_data(),
                   .a_step = 0,
                   .b = a.raw_data(),
                   .b_step = 0,
                   .c = c.raw_data(),
                   .count = kCount}));
  EXPECT_EQ(c.data<float>()[kCount - 1], 0);
}

TEST(GemmsTest, TheThirdBatchMatMulConvertsItsOperandsFirst) {
  const Tensor x = Tensor::Of<int8_t>({1, 2, 2}, {100, 100, -128, 1});
  const Tensor y = Tensor::Of<uint8_t>({2, 2, 1}, {255, 2, 1, 3});
  const Tensor z = RunOpOrDie("BatchMatMulV3", {x, y}, {{"Tout", DType::kInt32}});
  EXPECT_TRUE(z.Equals(Tensor::Of<int32_t>({2, 2, 1}, {25700, -32638, 400, -125})));
}

TEST(GemmsTest, TheThirdBatchMatMulHasTensorFlowsCombinationsOfTypes) {
  const auto run = [](DType x, DType y, DType z) {
    return RunOp("BatchMatMulV3", {Tensor::Zeros(x, {2, 3}), Tensor::Zeros(y, {3, 2})},
                 {{"Tout", z}})
        .status;
  };
  EXPECT_OK(run(DType::kInt8, DType::kUInt8, DType::kInt32));
  EXPECT_OK(run(DType::kUInt8, DType::kBFloat16, DType::kBFloat16));
  EXPECT_OK(run(DType::kInt16, DType::kInt16, DType::kInt16));
  for (const auto& [x, y, z] : {std::tuple(DType::kInt8, DType::kInt8, DType::kFloat),
                                {DType::kBFloat16, DType::kInt8, DType::kFloat},
                                {DType::kFloat, DType::kFloat, DType::kDouble}}) {
    EXPECT_THAT(run(x, y, z), IsError(StatusCode::kInvalidArgument, "No OpKernel was registered"));
  }
}

}  // namespace
}  // namespace tenon::testing
