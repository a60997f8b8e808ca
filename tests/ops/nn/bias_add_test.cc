// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "core/base/parallel.h"
#include "tests/testing/op_runner.h"

namespace tenon::testing {
namespace {

template <typename T>
Tensor CountedUp(DType dtype, const Shape& shape) {
  Tensor t(dtype, shape);
  for (int64_t i = 0; i < shape.num_elements(); ++i) t.data<T>()[i] = static_cast<T>(i % 251);
  return t;
}

/// Each element of the result against x plus the bias of its channel, which is `inner` elements
/// long.
template <typename T>
void ExpectBiasAdded(DType dtype, const Shape& shape, int64_t channels, int64_t inner,
                     const std::string& data_format) {
  const Tensor x = CountedUp<T>(dtype, shape), bias = CountedUp<T>(dtype, {channels});
  const Tensor y = RunOpOrDie("BiasAdd", {x, bias}, {{"data_format", data_format}});
  ASSERT_EQ(y.shape(), shape);
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    const T wanted = static_cast<T>(x.data<T>()[i] + bias.data<T>()[i / inner % channels]);
    ASSERT_EQ(y.data<T>()[i], wanted) << i << " of " << StrCat(shape) << ' ' << data_format;
  }
}

TEST(BiasAddTest, AddsToEachChannelInBothFormats) {
  for (const int64_t channels : {1, 3, 16, 33, 200}) {
    ExpectBiasAdded<float>(DType::kFloat, {7, channels}, channels, 1, "NHWC");
    ExpectBiasAdded<float>(DType::kFloat, {2, 5, 3, channels}, channels, 1, "NHWC");
    ExpectBiasAdded<int64_t>(DType::kInt64, {4, 5, channels}, channels, 1, "NHWC");
    ExpectBiasAdded<float>(DType::kFloat, {2, channels, 5, 3}, channels, 15, "NCHW");
    ExpectBiasAdded<double>(DType::kDouble, {3, channels}, channels, 1, "NCHW");
  }
}

TEST(BiasAddTest, HasNothingToAddToWithoutElements) {
  ExpectBiasAdded<float>(DType::kFloat, {4, 0}, 0, 1, "NHWC");
  ExpectBiasAdded<float>(DType::kFloat, {0, 3, 3, 8}, 8, 1, "NHWC");
}

TEST(BiasAddTest, DividesManyRowsAmongThreads) {
  const int before = ThreadBudget();
  SetThreadBudget(4);
  ExpectBiasAdded<float>(DType::kFloat, {50001, 64}, 64, 1, "NHWC");
  SetThreadBudget(before);
}

}  // namespace
}  // namespace tenon::testing
