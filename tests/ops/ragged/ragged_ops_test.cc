// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "core/base/exceptions.h"
#include "core/gradient/gradients.h"
#include "ops/composition.h"
#include "ops/ragged/ragged_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;
using Names = std::vector<std::string>;

Tensor Splits(std::initializer_list<int64_t> splits) { return Tensor::Vector<int64_t>(splits); }
Tensor Values() { return Tensor::Vector<float>({1, 2, 3}); }

TEST(Ragged, RangesOfSeveralLengths) {
  const OpResult result =
      RunOp("RaggedRange", {Tensor::Vector<int32_t>({0, 5, 8}), Tensor::Vector<int32_t>({3, 5, 2}),
                            Tensor::Vector<int32_t>({1, 1, -2})});
  ASSERT_OK(result.status);
  EXPECT_THAT(Numbers(result.outputs[0]), ElementsAre(0, 3, 3, 6));
  EXPECT_THAT(Numbers(result.outputs[1]), ElementsAre(0, 1, 2, 8, 6, 4));
}

TEST(Ragged, EmptyRowsAreFilled) {
  const auto fill = [](std::initializer_list<int64_t> rows, int64_t nrows) {
    return RunOp("RaggedFillEmptyRows", {Tensor::Vector<int64_t>(rows), Values(),
                                         Tensor::Scalar(nrows), Tensor::Scalar<float>(9)});
  };
  // Rows in any order; values of one row stay in theirs.
  const OpResult filled = fill({3, 1, 3}, 5);
  ASSERT_OK(filled.status);
  EXPECT_THAT(Numbers(filled.outputs[0]), ElementsAre(0, 1, 2, 3, 3, 4));
  EXPECT_THAT(Numbers(filled.outputs[1]), ElementsAre(9, 2, 9, 1, 3, 9));
  EXPECT_THAT(filled.outputs[2].flat<bool>(), ElementsAre(true, false, true, false, true));
  EXPECT_THAT(Numbers(filled.outputs[3]), ElementsAre(3, 1, 4));
  EXPECT_THAT(fill({0, 3, 1}, 3).status, IsError(kInvalid, "indices(1, 0) is invalid: 3"));
  EXPECT_THAT(fill({0, 1, 1}, -1).status, IsError(kInvalid, "must not be negative"));
  const Tensor none(DType::kInt64, {0}), texts(DType::kString, {0});
  const OpResult defaults = RunOp("RaggedFillEmptyRows", {none, texts, Tensor::Scalar<int64_t>(2),
                                                          Tensor::Scalar<TString>("z")});
  ASSERT_OK(defaults.status);
  EXPECT_TRUE(defaults.outputs[1].Equals(Tensor::Vector<TString>({"z", "z"})));
}

TEST(Ragged, SplitsMayNotBeEmpty) {
  const Tensor one = Tensor::Vector({1}), none(DType::kInt64, {0}), weight(DType::kFloat, {0});
  EXPECT_THAT(RunOp("RaggedBincount", {none, one, Tensor::Scalar(2), weight}).status,
              IsError(kInvalid, "Splits must be non-empty"));
}

TEST(Ragged, RangesThatAreTooLongAreAnError) {
  const auto range = [](int64_t start, int64_t limit, int64_t delta) {
    return CatchExceptions([&] {
      return RunOp("RaggedRange",
                   {Tensor::Vector<int64_t>({start}), Tensor::Vector<int64_t>({limit}),
                    Tensor::Vector<int64_t>({delta})})
          .status;
    });
  };
  EXPECT_THAT(range(0, 3, 0), IsError(kInvalid, "Requires delta != 0"));
  EXPECT_THAT(range(INT64_MIN, INT64_MAX, 1), IsError(kInvalid, "is too long"));
  EXPECT_THAT(range(0, INT64_MAX, 1), IsError(StatusCode::kResourceExhausted, ""));
  EXPECT_OK(range(INT64_MIN, INT64_MAX, INT64_MAX));
  EXPECT_OK(range(INT64_MAX, INT64_MIN, INT64_MIN));
  const Tensor nan = Tensor::Scalar(std::nanf("")), one = Tensor::Scalar(1.0f);
  EXPECT_THAT(RunOp("RaggedRange", {one, nan, one}).status, IsError(kInvalid, "NaN"));
}

TEST(Ragged, AsSparse) {
  const OpResult result =
      RunOp("RaggedTensorToSparse", {Splits({0, 2, 3}), Splits({0, 1, 1, 3}), Values()});
  ASSERT_OK(result.status);
  EXPECT_THAT(Numbers(result.outputs[0]), ElementsAre(0, 0, 0, 1, 0, 0, 1, 0, 1));
  EXPECT_THAT(Numbers(result.outputs[2]), ElementsAre(2, 2, 2));
}

TEST(Ragged, RowsAreGathered) {
  const OpResult result = RunOp(
      "RaggedGather", {Splits({0, 2, 2, 3}), Values(), Tensor::Of<int32_t>({1, 3}, {2, 1, 0})},
      {{"OUTPUT_RAGGED_RANK", 2}});
  ASSERT_OK(result.status);
  EXPECT_THAT(Numbers(result.outputs[0]), ElementsAre(0, 3));
  EXPECT_THAT(Numbers(result.outputs[1]), ElementsAre(0, 1, 1, 3));
  EXPECT_THAT(Numbers(result.outputs[2]), ElementsAre(3, 1, 2));
}

TEST(Ragged, AsDenseFilledUpAndCutOff) {
  const auto run = [](const Tensor& shape, const Tensor& partition) {
    return RunOp("RaggedTensorToTensor", {shape, Values(), Tensor::Scalar<float>(9), partition},
                 {{"row_partition_types", Names{"ROW_SPLITS"}}}, true);
  };
  EXPECT_THAT(Numbers(run(Splits({-1, -1}), Splits({0, 2, 2, 3})).outputs[0]),
              ElementsAre(1, 2, 9, 9, 3, 9));
  EXPECT_THAT(Numbers(run(Splits({4, 1}), Splits({0, 2, 2, 3})).outputs[0]),
              ElementsAre(1, 9, 3, 9));
  EXPECT_THAT(run(Splits({-1, -1}), Splits({0, 5})).status, IsError(kInvalid, "5 items"));
  EXPECT_THAT(run(Splits({-1, -1}), Splits({0, 2, 1, 3})).status,
              IsError(kInvalid, "2 followed by 1"));
  EXPECT_THAT(run(Splits({-1}), Splits({0, 3})).status, IsError(kInvalid, "shape.rank = 1"));
}

TEST(Ragged, SplitsThatDoNotFitAreRefused) {
  const auto status = [](const Tensor& splits) {
    return RunOp("RaggedTensorToSparse", {splits, Values()}, {}, true).status;
  };
  EXPECT_THAT(status(Splits({0, 2})), IsError(kInvalid, "Final value of ragged splits"));
  EXPECT_THAT(status(Splits({1, 3})), IsError(kInvalid, "First value of ragged splits must be 0"));
  EXPECT_THAT(status(Splits({})), IsError(kInvalid, "may not be empty"));
  EXPECT_THAT(RunOp("RaggedGather", {Splits({0, 5}), Values(), Tensor::Vector<int32_t>({0})},
                    {{"OUTPUT_RAGGED_RANK", 1}})
                  .status,
              IsError(kInvalid, "must not point past values"));
  EXPECT_THAT(RunOp("RaggedGather", {Splits({0, 3}), Values(), Tensor::Vector<int32_t>({1})},
                    {{"OUTPUT_RAGGED_RANK", 1}})
                  .status,
              IsError(kInvalid, "indices[0] = 1 is not in [0, 1)"));
}

TEST(Ragged, CountsByRow) {
  EXPECT_THAT(Numbers(RunOpOrDie("RaggedBincount",
                                 {Splits({0, 2, 2, 3}), Tensor::Vector<int32_t>({1, 1, 0}),
                                  Tensor::Scalar<int32_t>(2), Tensor(DType::kFloat, {0})})),
              ElementsAre(0, 2, 0, 0, 1, 0));
}

/// Encoded row by row and put together again, the gradient of squares comes back to the values.
TEST(RaggedVariant, RowsComeBackAndSoDoGradients) {
  GraphSession s;
  const Output values = Const(Tensor::Of<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
  const Output outer = Const(Splits({0, 2, 2, 3})), inner = Const(Splits({0, 1, 1, 3}));
  const Output rows = RaggedTensorToVariant({outer, inner}, values * values, true);
  const auto back = RaggedTensorFromVariant(rows, -1, 2, DType::kFloat);
  const Output dx = Gradients(Sum(back.output_dense_values), values)[0];
  const auto found = s.Run({back.output_nested_splits[0], back.output_nested_splits[1],
                            back.output_dense_values, ShapeOf(rows), dx});
  ASSERT_OK(found);
  EXPECT_THAT(Numbers((*found)[0]), ElementsAre(0, 2, 2, 3));
  EXPECT_THAT(Numbers((*found)[1]), ElementsAre(0, 1, 1, 3));
  EXPECT_THAT(Numbers((*found)[2]), ElementsAre(1, 4, 9, 16, 25, 36));
  EXPECT_THAT(Numbers((*found)[3]), ElementsAre(3));
  EXPECT_THAT(Numbers((*found)[4]), ElementsAre(2, 4, 6, 8, 10, 12));
}

TEST(RaggedVariant, WrongUsesAreErrors) {
  const AttributeMap rows = {{"batched_input", true}};
  EXPECT_FALSE(RunOp("RaggedTensorToVariant", {Splits({0, 9}), Values()}, rows).status.ok());
  EXPECT_FALSE(RunOp("RaggedTensorToVariant", {Splits({2, 1}), Values()}, rows).status.ok());
  EXPECT_FALSE(
      RunOp("RaggedTensorToVariant", {Splits({0, 1}), Tensor::Scalar(1.0f)}, rows).status.ok());
  const Tensor encoded = RunOpOrDie("RaggedTensorToVariant", {Splits({0, 1, 3}), Values()}, rows);
  const auto decode = [&](const Tensor& t, int64_t input_rank, int64_t rank, DType type) {
    return RunOp(
               "RaggedTensorFromVariant", {t},
               {{"input_ragged_rank", input_rank}, {"output_ragged_rank", rank}, {"Tvalues", type}})
        .status;
  };
  EXPECT_OK(decode(encoded, -1, 1, DType::kFloat));
  EXPECT_FALSE(decode(encoded, -1, 0, DType::kFloat).ok());
  EXPECT_FALSE(decode(encoded, -1, 2, DType::kFloat).ok());
  EXPECT_FALSE(decode(encoded, 0, 1, DType::kInt32).ok());
  EXPECT_FALSE(decode(Tensor(DType::kVariant, {2}), -1, 1, DType::kFloat).ok());
}

}  // namespace
}  // namespace tenon::testing
