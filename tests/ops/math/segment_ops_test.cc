// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "core/gradient/gradients.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/reduce_segments.h"
#include "ops/sparse/sparse_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Tensor SegmentRows() { return Tensor::Of<float>({4, 2}, {1, -2, 3, 4, -5, 6, 7, 8}); }
Tensor Ids(std::initializer_list<int32_t> ids) { return Tensor::Vector<int32_t>(ids); }

TEST(Segments, RowsAreGroupedInTheirOrder) {
  const SegmentedRows by = GroupRows({2, -1, 0, 2, 2}, 4);
  EXPECT_THAT(by.starts, ElementsAre(0, 1, 1, 4, 4));
  EXPECT_THAT(by.rows, ElementsAre(2, 0, 3, 4));
  EXPECT_THAT(GroupRows({1, 0, 1}, 2, {7, 8, 9}).rows, ElementsAre(8, 7, 9));
  EXPECT_THAT(GroupRows({}, 0).rows, IsEmpty());
  EXPECT_THAT(GroupRows({}, 2).starts, ElementsAre(0, 0, 0));
}

TEST(Segments, SortedRowsAreGroupedAsOthers) {
  const SegmentedRows by = GroupRows({-2, -1, 1, 1, 2, 4}, 6);
  EXPECT_THAT(by.starts, ElementsAre(0, 0, 2, 3, 3, 4, 4));
  EXPECT_THAT(by.rows, ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(GroupRows({0, 0, 1}, 2, {7, 8, 9}).rows, ElementsAre(7, 8, 9));
  EXPECT_THAT(GroupRows({-3, -1}, 2).starts, ElementsAre(0, 0, 0));
  EXPECT_THAT(GroupRows({-3, -1}, 2).rows, IsEmpty());
}

TEST(Segments, WideRowsAreReducedAsTheirColumns) {
  constexpr int64_t kRows = 30, kWidth = 75;
  for (const DType type : {DType::kFloat, DType::kDouble, DType::kHalf, DType::kInt32}) {
    const Tensor rows = Sample(type, {kRows, kWidth}, -3, 3, 1);
    Tensor ids(DType::kInt32, {kRows});
    for (int i = 0; i < kRows; ++i) ids.data<int32_t>()[i] = i * i % 7 - 1;
    for (const char* op : {"Sum", "Prod", "Max", "Min"}) {
      const std::string name = StrCat("UnsortedSegment", op);
      const Tensor all = RunOpOrDie(name, {rows, ids, Tensor::Scalar(6)});
      for (int64_t column = 0; column < kWidth; ++column) {
        const Tensor from = Tensor::Vector<int32_t>({0, static_cast<int32_t>(column)});
        const auto column_of = [&](const Tensor& t) {
          const Tensor size = Tensor::Vector<int32_t>({static_cast<int32_t>(t.dim(0)), 1});
          return RunOpOrDie("Slice", {t, from, size});
        };
        const Tensor alone = RunOpOrDie(name, {column_of(rows), ids, Tensor::Scalar(6)});
        ASSERT_TRUE(alone.Equals(column_of(all)))
            << name << " of " << ToString(type) << ", " << column;
      }
    }
  }
}

TEST(Segments, TheSignOfZeroIsKeptInColumnsOfAnyNumber) {
  for (const DType type : {DType::kFloat, DType::kDouble}) {
    for (const int64_t width : {1, 31, 32, 33, 70}) {
      Tensor rows(type, {1, width});
      Dispatch(type, TypeList<float, double>(), [&]<typename T>(T) {
        std::fill_n(rows.data<T>(), width, T(-0.0));
        const Tensor sum = RunOpOrDie("SparseSegmentSum", {rows, Ids({0}), Ids({0})});
        for (int64_t i = 0; i < width; ++i) {
          ASSERT_TRUE(std::signbit(sum.data<T>()[i])) << i << " of " << width;
        }
      });
    }
  }
}

TEST(Segments, EachReductionOfSortedRows) {
  const auto run = [](std::string_view op) {
    return Numbers(RunOpOrDie(op, {SegmentRows(), Ids({0, 0, 2, 2})}));
  };
  EXPECT_THAT(run("SegmentSum"), ElementsAre(4, 2, 0, 0, 2, 14));
  EXPECT_THAT(run("SegmentMean"), ElementsAre(2, 1, 0, 0, 1, 7));
  EXPECT_THAT(run("SegmentProd"), ElementsAre(3, -8, 1, 1, -35, 48));
  EXPECT_THAT(run("SegmentMax"), ElementsAre(3, 4, 0, 0, 7, 8));
  EXPECT_THAT(run("SegmentMin"), ElementsAre(1, -2, 0, 0, -5, 6));
}

TEST(Segments, UnsortedOnesLeaveOutNegativeIdsAndBeginAtTheIdentity) {
  const auto run = [](std::string_view op) {
    return Numbers(RunOpOrDie(op, {SegmentRows(), Ids({2, 0, 2, -1}), Tensor::Scalar<int32_t>(3)}));
  };
  constexpr double kMost = std::numeric_limits<float>::max();
  EXPECT_THAT(run("UnsortedSegmentProd"), ElementsAre(3, 4, 1, 1, -5, -12));
  EXPECT_THAT(run("UnsortedSegmentMax"), ElementsAre(3, 4, -kMost, -kMost, 1, 6));
  EXPECT_THAT(run("UnsortedSegmentMin"), ElementsAre(3, 4, kMost, kMost, -5, -2));
}

TEST(Segments, MeansOfIntegersAreCutAndHalvesAddUpInFloat) {
  EXPECT_THAT(
      Numbers(RunOpOrDie("SegmentMean", {Tensor::Vector<int32_t>({-3, 2, 2}), Ids({0, 0, 1})})),
      ElementsAre(0, 2));
  Tensor many(DType::kHalf, {4096});
  for (Half& x : many.flat<Half>()) x = Half(1.0f);
  EXPECT_THAT(Numbers(RunOpOrDie("SegmentSum", {many, Tensor::Zeros(DType::kInt32, {4096})})),
              ElementsAre(4096));
}

TEST(Segments, WideRowsAndManySegmentsRunInParallel) {
  constexpr int64_t kRows = 3000, kWidth = 700;
  Tensor data(DType::kFloat, {kRows, kWidth});
  Tensor ids(DType::kInt32, {kRows});
  for (int64_t i = 0; i < kRows; ++i) {
    ids.data<int32_t>()[i] = static_cast<int32_t>(i / 3);
    std::fill_n(data.data<float>() + i * kWidth, kWidth, static_cast<float>(i));
  }
  const Tensor sums = RunOpOrDie("SegmentSum", {data, ids});
  ASSERT_EQ(sums.shape(), (Shape{kRows / 3, kWidth}));
  for (int64_t s = 0; s < kRows / 3; ++s) {
    EXPECT_EQ(sums.data<float>()[s * kWidth + kWidth - 1], static_cast<float>(9 * s + 3));
  }
}

TEST(Segments, IdsThatAreNotSortedAreRefusedInTensorFlowsWords) {
  const auto status = [](std::initializer_list<int32_t> ids) {
    return RunOp("SegmentMax", {SegmentRows(), Ids(ids)}, {}, true).status;
  };
  EXPECT_THAT(status({0, 1, 0, 1}), IsError(kInvalid, "segment ids are not increasing"));
  EXPECT_THAT(status({0, 0, 0, -1}), IsError(kInvalid, "segment ids must be >= 0"));
  EXPECT_THAT(status({0, 1, 2, 0}), IsError(kInvalid,
                                            "Segment id 1 out of range [0, 1), possibly "
                                            "because 'segment_ids' input is not sorted"));
  EXPECT_THAT(status({-1, -1, 0, 0}), IsError(kInvalid, "Segment id -1 out of range [0, 1)"));
  EXPECT_THAT(status({0, 1}), IsError(kInvalid, "segment_ids"));
}

TEST(Segments, AHugeIdIsAnErrorAndNoCrash) {
  const Tensor ids = Tensor::Vector<int64_t>({0, 0, 0, INT64_MAX});
  EXPECT_THAT(RunOp("SegmentSum", {SegmentRows(), ids}).status, IsError(kInvalid, "too large"));
  const Tensor large = Tensor::Vector<int64_t>({0, 0, 0, INT64_MAX / 2});
  EXPECT_FALSE(RunOp("SegmentSum", {SegmentRows(), large}).status.ok());
  const Tensor none(DType::kFloat, {0, 0});
  EXPECT_FALSE(RunOp("UnsortedSegmentSum",
                     {none, Tensor(DType::kInt32, {0}), Tensor::Scalar<int64_t>(-1)}, {}, true)
                   .status.ok());
}

TEST(Segments, TheGradientOfAProductWithZeros) {
  GraphSession s;
  const Output x = Const({2.0, 0.0, 3.0, 0.0, 0.0, 5.0});
  const Output y = SegmentProd(x, Const({0, 0, 0, 1, 1, 1}));
  EXPECT_THAT(Numbers(s.Value(Gradients(y, x)[0])), ElementsAre(0, 6, 0, 0, 0, 0));
}

TEST(Segments, RowsOfEqualExtremesShareTheGradient) {
  GraphSession s;
  const Output x = Const({2.0, 5.0, 5.0, -1.0});
  const Output y = UnsortedSegmentMax(x, Const({0, 0, 0, -1}), 1);
  EXPECT_THAT(Numbers(s.Value(Gradients(y, x)[0])), ElementsAre(0, 0.5, 0.5, 0));
}

// --- SparseSegment ---

TEST(SparseSegments, EachReductionOfTheRowsThatAreNamed) {
  const auto run = [](std::string_view op) {
    return Numbers(RunOpOrDie(op, {SegmentRows(), Ids({3, 0, 0, 1}), Ids({0, 0, 0, 2})}));
  };
  EXPECT_THAT(run("SparseSegmentSum"), ElementsAre(9, 4, 0, 0, 3, 4));
  EXPECT_THAT(run("SparseSegmentMean"), ElementsAre(3, 4.0f / 3, 0, 0, 3, 4));
  EXPECT_THAT(run("SparseSegmentSqrtN"),
              ElementsAre(9 / std::sqrt(3.0f), 4 / std::sqrt(3.0f), 0, 0, 3, 4));
}

TEST(SparseSegments, TheNumberOfSegmentsMayBeGiven) {
  const std::vector<Tensor> in = {SegmentRows(), Ids({1}), Ids({0}), Tensor::Scalar<int32_t>(2)};
  const OpResult result = RunOp("SparseSegmentMeanWithNumSegments", in);
  EXPECT_EQ(result.declared_shapes[0], (PartialShape{2, 2}));
  EXPECT_THAT(Numbers(result.outputs[0]), ElementsAre(3, 4, 0, 0));
  EXPECT_THAT(Numbers(RunOpOrDie("SparseSegmentSumWithNumSegments",
                                 {SegmentRows(), Ids({}), Ids({}), Tensor::Scalar<int64_t>(1)})),
              ElementsAre(0, 0));
}

TEST(SparseSegments, GradientsGoBackToTheRows) {
  const std::vector<Tensor> in = {Tensor::Of<float>({2, 1}, {6, 5}), Ids({3, 1, 3}), Ids({0, 0, 1}),
                                  Tensor::Scalar<int32_t>(5)};
  EXPECT_THAT(Numbers(RunOpOrDie("SparseSegmentSumGrad", in)), ElementsAre(0, 6, 0, 11, 0));
  EXPECT_THAT(Numbers(RunOpOrDie("SparseSegmentMeanGrad", in)), ElementsAre(0, 3, 0, 8, 0));
  const OpResult compact = RunOp("SparseSegmentMeanGradV2", in);
  ASSERT_OK(compact.status);
  EXPECT_THAT(Numbers(compact.outputs[0]), ElementsAre(3, 8));
  EXPECT_THAT(Numbers(compact.outputs[1]), ElementsAre(1, 3));
}

TEST(SparseSegments, WrongIndicesAreRefusedInTensorFlowsWords) {
  const auto status = [](const Tensor& indices, const Tensor& ids) {
    return RunOp("SparseSegmentSum", {SegmentRows(), indices, ids}, {}, true).status;
  };
  EXPECT_THAT(status(Ids({0, 4}), Ids({0, 1})),
              IsError(kInvalid, "indices[1] == 4 out of range [0, 4)"));
  EXPECT_THAT(status(Ids({-1}), Ids({0})), IsError(kInvalid, "indices[0] == -1 out of range"));
  EXPECT_THAT(status(Ids({0, 1}), Ids({1, 0})),
              IsError(kInvalid, "segment ids are not increasing"));
  EXPECT_THAT(status(Ids({0, 1}), Ids({0})), IsError(kInvalid, "same size"));
  EXPECT_THAT(RunOp("SparseSegmentSumWithNumSegments",
                    {SegmentRows(), Ids({0}), Ids({2}), Tensor::Scalar<int32_t>(2)})
                  .status,
              IsError(kInvalid, "segment ids must be < num_segments"));
  EXPECT_THAT(
      RunOp("SparseSegmentSumGrad", {SegmentRows(), Ids({0}), Ids({4}), Tensor::Scalar<int32_t>(2)})
          .status,
      IsError(kInvalid, "Segment id 4 out of range [0, 4)"));
}

}  // namespace
}  // namespace tenon::testing
