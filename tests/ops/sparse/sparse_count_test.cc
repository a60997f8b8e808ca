// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

const Tensor kNoWeights = Tensor::Vector(std::vector<float>());

TEST(SparseCountTest, Rows) {
  const auto values = Tensor::Of<int64_t>({2, 3}, {1, 1, 4, 0, 5, 5});
  const OpResult r =
      RunOp("DenseCountSparseOutput", {values, kNoWeights}, {{"binary_output", false}});
  ASSERT_OK(r.status);
  EXPECT_THAT(r.outputs[0].flat<int64_t>(), ElementsAre(0, 1, 0, 4, 1, 0, 1, 5));
  EXPECT_THAT(r.outputs[1].flat<float>(), ElementsAre(2, 1, 1, 2));
  EXPECT_THAT(r.outputs[2].flat<int64_t>(), ElementsAre(2, 6));
}

TEST(SparseCountTest, WrongInputsAreErrors) {
  const AttributeMap attrs = {{"binary_output", false}};
  const Tensor values = Tensor::Vector<int64_t>({1, 2});
  const auto ragged = [&](const std::vector<int64_t>& splits) {
    return RunOp("RaggedCountSparseOutput", {Tensor::Vector(splits), values, kNoWeights}, attrs)
        .status;
  };
  EXPECT_OK(ragged({0, 0, 2, 2}));
  EXPECT_FALSE(ragged({0, 5, 2}).ok());
  EXPECT_FALSE(ragged({0, 1}).ok());
  EXPECT_FALSE(ragged({}).ok());
  const auto sparse = [&](const Tensor& indices, const std::vector<int64_t>& shape) {
    return RunOp("SparseCountSparseOutput", {indices, values, Tensor::Vector(shape), kNoWeights},
                 attrs)
        .status;
  };
  EXPECT_OK(sparse(Tensor::Of<int64_t>({2, 2}, {0, 0, 1, 1}), {2, 2}));
  EXPECT_FALSE(sparse(Tensor::Of<int64_t>({2, 2}, {0, 0, 2, 1}), {2, 2}).ok());
  EXPECT_FALSE(sparse(Tensor::Of<int64_t>({2, 2}, {0, 0, 1, 1}), {int64_t{1} << 60, 2}).ok());
  EXPECT_FALSE(sparse(Tensor::Of<int64_t>({2, 2}, {0, 0, 1, 1}), {2}).ok());
}

}  // namespace
}  // namespace tenon::testing
