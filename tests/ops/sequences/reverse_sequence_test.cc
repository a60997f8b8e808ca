// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "core/gradient/gradients.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

Tensor Matrix() { return Tensor::Of<int32_t>({2, 4}, {0, 1, 2, 3, 10, 11, 12, 13}); }
Tensor Lengths(std::initializer_list<int64_t> lengths) { return Tensor::Vector<int64_t>(lengths); }

TEST(ReverseSequence, ReversesTheFirstElements) {
  const Tensor y = RunOpOrDie("ReverseSequence", {Matrix(), Lengths({3, 2})}, {{"seq_dim", 1}});
  EXPECT_EQ(y.shape(), Shape({2, 4}));
  EXPECT_THAT(Numbers(y), ElementsAre(2, 1, 0, 3, 11, 10, 12, 13));
}

TEST(ReverseSequence, LengthsMayBeNoneAndAll) {
  EXPECT_THAT(Numbers(RunOpOrDie("ReverseSequence", {Matrix(), Lengths({0, 4})}, {{"seq_dim", 1}})),
              ElementsAre(0, 1, 2, 3, 13, 12, 11, 10));
}

TEST(ReverseSequence, TheBatchMayComeLast) {
  const Tensor lengths = Tensor::Vector<int32_t>({1, 2, 0, 2});
  EXPECT_THAT(Numbers(RunOpOrDie("ReverseSequence", {Matrix(), lengths},
                                 {{"seq_dim", 0}, {"batch_dim", 1}})),
              ElementsAre(0, 11, 2, 13, 10, 1, 12, 3));
}

TEST(ReverseSequence, RowsMoveAsWholes) {
  const Tensor x = Tensor::Of<float>({2, 1, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_THAT(Numbers(RunOpOrDie("ReverseSequence", {x, Lengths({2, 1})}, {{"seq_dim", 2}})),
              ElementsAre(2, 3, 0, 1, 4, 5, 6, 7));
}

TEST(ReverseSequence, AlsoOfStrings) {
  const Tensor x = Tensor::Of<TString>({1, 3}, {"a", "b", "c"});
  EXPECT_TRUE(RunOpOrDie("ReverseSequence", {x, Lengths({2})}, {{"seq_dim", 1}})
                  .Equals(Tensor::Of<TString>({1, 3}, {"b", "a", "c"})));
}

TEST(ReverseSequence, RefusesWrongArguments) {
  const auto status = [](const Tensor& lengths, int64_t seq_dim, int64_t batch_dim, bool hidden) {
    return RunOp("ReverseSequence", {Matrix(), lengths},
                 {{"seq_dim", seq_dim}, {"batch_dim", batch_dim}}, hidden)
        .status;
  };
  for (const bool hidden : {false, true}) {
    EXPECT_THAT(status(Lengths({3, 5}), 1, 0, hidden), IsError(kInvalid, "seq_lengths[1] = 5"));
    EXPECT_THAT(status(Lengths({-1, 4}), 1, 0, hidden), IsError(kInvalid, "seq_lengths[0] = -1"));
    EXPECT_THAT(status(Lengths({1, 1}), 0, 0, hidden),
                IsError(kInvalid, "batch_dim == seq_dim == 0"));
    EXPECT_THAT(status(Lengths({1, 1}), 2, 0, hidden),
                IsError(kInvalid, "seq_dim must be < input rank (2 vs. 2)"));
    EXPECT_THAT(status(Lengths({1, 1}), -1, 0, hidden), IsError(kInvalid, "seq_dim = -1"));
    EXPECT_THAT(status(Lengths({1, 1}), 1, 2, hidden),
                IsError(kInvalid, "batch_dim must be < input rank (2 vs. 2)"));
    EXPECT_THAT(status(Lengths({1, 1, 1}), 1, 0, hidden), IsError(kInvalid, "3"));
    EXPECT_THAT(status(Tensor::Scalar<int64_t>(1), 1, 0, hidden), IsError(kInvalid, ""));
  }
}

TEST(ReverseSequence, TheShapeIsThatOfTheInputAndTheLengths) {
  GraphSession s;
  const Output x = Placeholder(DType::kFloat, PartialShape{-1, 4});
  const Output lengths = Placeholder(DType::kInt64, PartialShape{3});
  EXPECT_EQ(ReverseSequence(x, lengths, 1).shape(), (PartialShape{3, 4}));
}

TEST(ReverseSequence, TheGradientIsReversedToo) {
  GraphSession s;
  const Output x = Const({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}});
  const Output weights = Const({{10.0, 20.0, 30.0}, {40.0, 50.0, 60.0}});
  const Output y = ReverseSequence(x, Const({2, 3}), 1);
  const Output dx = Gradients(Mul(y, weights), x)[0];
  EXPECT_THAT(Numbers(s.Value(dx)), ElementsAre(20, 10, 30, 60, 50, 40));
}

}  // namespace
}  // namespace tenon::testing
