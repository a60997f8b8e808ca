// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "core/gradient/gradients.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/sequences/sequences_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

/// The derivatives of `loss`, a function of `values` that builds a scalar, by finite differences,
/// and those that the gradient ops give.
void CheckGradients(const std::vector<Tensor>& values,
                    const std::function<Output(const std::vector<Output>&)>& build) {
  GraphSession s;
  std::vector<Output> xs;
  for (const Tensor& v : values) {
    xs.push_back(NodeBuilder("Placeholder")
                     .Attr("dtype", v.dtype())
                     .Attr("shape", PartialShape(v.shape()))
                     .Output());
  }
  const Output loss = build(xs);
  const std::vector<Output> gradients = Gradients({loss}, xs);
  const auto feeds = [&](size_t changed, int64_t element, float by) {
    Session::Feeds result;
    for (size_t i = 0; i < xs.size(); ++i) {
      Tensor v = values[i].Copy().value();
      if (i == changed) v.data<float>()[element] += by;
      result.emplace_back(xs[i].name(), std::move(v));
    }
    return result;
  };
  const auto given = s.Run(gradients, {}, feeds(values.size(), 0, 0));
  ASSERT_OK(given);
  constexpr float kStep = 1e-2;
  for (size_t i = 0; i < values.size(); ++i) {
    for (int64_t e = 0; e < values[i].num_elements(); ++e) {
      const auto up = s.Run({loss}, {}, feeds(i, e, kStep));
      const auto down = s.Run({loss}, {}, feeds(i, e, -kStep));
      ASSERT_OK(up);
      const double slope =
          ((*up)[0].scalar<float>() - (*down)[0].scalar<float>()) / (2 * double{kStep});
      EXPECT_NEAR((*given)[i].data<float>()[e], slope, 4e-3) << "input " << i << " element " << e;
    }
  }
}

std::vector<Tensor> BlockInputs() {
  std::vector<Tensor> values;
  for (const Shape& shape : {Shape{3, 2, 3}, Shape{2, 2}, Shape{2, 2}, Shape{5, 8}, Shape{2},
                             Shape{2}, Shape{2}, Shape{8}}) {
    values.push_back(Sample(DType::kFloat, shape, -1, 1, values.size()));
  }
  return values;
}

/// A loss of all states and outputs, with different weights.
Output LossOf(const Output& cs, const Output& h) {
  return Sum(Square(cs)) + Sum(h * Const(0.7f) + h * h * h);
}

TEST(BlockLstm, GradientsAreDerivatives) {
  for (const bool peephole : {false, true}) {
    CheckGradients(BlockInputs(), [&](const std::vector<Output>& x) {
      const auto y = BlockLSTM(2, x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7],
                               {.cell_clip = 0, .use_peephole = peephole});
      return LossOf(y.cs, y.h);
    });
    CheckGradients(BlockInputs(), [&](const std::vector<Output>& x) {
      const auto y = BlockLSTMV2(3, x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7],
                                 {.use_peephole = peephole});
      return LossOf(y.cs, y.h);
    });
  }
}

TEST(CtcLoss, GradientIsTheDerivative) {
  for (const bool merge : {false, true}) {
    CheckGradients({Sample(DType::kFloat, {4, 2, 3}, -1, 1, 5)}, [&](const std::vector<Output>& x) {
      const Output indices = Const(Tensor::Of<int64_t>({3, 2}, {0, 0, 0, 1, 1, 0}));
      const auto y =
          CTCLoss(x[0], indices, Const({0, 0, 1}), Const({4, 3}), {.ctc_merge_repeated = merge});
      return Sum(y.loss * Const({1.0f, 2.0f}));
    });
  }
}

TEST(CtcLoss, OfOneStepIsTheLogarithmOfTheProbability) {
  const Tensor logits = Tensor::Of<float>({1, 1, 2}, {1, 3});
  const Tensor loss = RunOpOrDie("CTCLoss", {logits, Tensor::Of<int64_t>({1, 2}, {0, 0}),
                                             Tensor::Vector({0}), Tensor::Vector({1})});
  EXPECT_NEAR(loss.data<float>()[0], std::log(1 + std::exp(2.0)), 1e-5);
}

/// All labels are blanks: the only path has no label, and nothing is read beside the variables.
TEST(CtcLoss, OfBlanksAloneIsThatOfBlanks) {
  const Tensor logits = Tensor::Of<float>({2, 1, 2}, {1, 3, 0, 0});
  const Tensor loss = RunOpOrDie("CTCLoss", {logits, Tensor::Of<int64_t>({1, 2}, {0, 0}),
                                             Tensor::Vector({1}), Tensor::Vector({2})});
  EXPECT_NEAR(loss.data<float>()[0], std::log(1 + std::exp(-2.0)) + std::log(2), 1e-5);
}

TEST(CtcDecoders, WrongUsesFail) {
  const Tensor logits = Sample(DType::kFloat, {3, 1, 2}, -1, 1, 1);
  EXPECT_THAT(RunOp("CTCBeamSearchDecoder", {logits, Tensor::Vector({3})},
                    {{"beam_width", 2}, {"top_paths", 3}})
                  .status,
              IsError(StatusCode::kInvalidArgument, "more paths than the beam width"));
  EXPECT_THAT(RunOp("CTCBeamSearchDecoder", {logits, Tensor::Vector({0})},
                    {{"beam_width", 9}, {"top_paths", 2}})
                  .status,
              IsError(StatusCode::kInvalidArgument, "Less leaves"));
  EXPECT_THAT(RunOp("CTCGreedyDecoder", {logits, Tensor::Vector({4})}).status,
              IsError(StatusCode::kFailedPrecondition, "must be at most 3, found 4"));
  EXPECT_THAT(RunOp("CTCGreedyDecoder", {logits, Tensor::Vector({3})}, {{"blank_index", 2}}).status,
              IsError(StatusCode::kInvalidArgument, "blank_index expected to be between -2 and 1"));
}

}  // namespace
}  // namespace tenon::testing
