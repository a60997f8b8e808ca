// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cfloat>

#include "proto/summary.pb.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

Summary Parsed(const Tensor& t) {
  Summary summary;
  EXPECT_TRUE(summary.ParseFromString(std::string(t.scalar<TString>())));
  return summary;
}

TEST(SummaryOps, AScalarSummaryHasAValuePerElement) {
  const Summary summary =
      Parsed(RunOpOrDie("ScalarSummary", {Tensor::Vector<std::string>({"a", "b"}),
                                          Tensor::Vector<int64_t>({3, -4})}));
  ASSERT_EQ(summary.value_size(), 2);
  EXPECT_EQ(summary.value(0).tag(), "a");
  EXPECT_EQ(summary.value(1).simple_value(), -4);
  EXPECT_THAT(RunOp("ScalarSummary", {Tensor::Scalar("a"), Tensor::Vector<float>({1})}).status,
              IsError(StatusCode::kInvalidArgument, "not the same shape: [] != [1] (tag 'a')"));
}

TEST(SummaryOps, AHistogramHasTensorFlowsBuckets) {
  const Summary summary = Parsed(RunOpOrDie(
      "HistogramSummary", {Tensor::Scalar("h"), Tensor::Vector<float>({0, 0, 1, -1, 2.5f})}));
  const HistogramProto& h = summary.value(0).histo();
  EXPECT_EQ(h.min(), -1);
  EXPECT_EQ(h.max(), 2.5);
  EXPECT_EQ(h.num(), 5);
  EXPECT_EQ(h.sum(), 2.5);
  EXPECT_EQ(h.sum_squares(), 8.25);
  double count = 0;
  for (const double b : h.bucket()) count += b;
  EXPECT_EQ(count, 5);
  // No two empty buckets in a row, and the last limit is the largest double.
  for (int i = 1; i < h.bucket_size(); ++i) {
    EXPECT_TRUE(h.bucket(i) != 0 || h.bucket(i - 1) != 0);
    EXPECT_LT(h.bucket_limit(i - 1), h.bucket_limit(i));
  }
  EXPECT_EQ(h.bucket_limit(h.bucket_limit_size() - 1), DBL_MAX);
}

TEST(SummaryOps, AHistogramOfNothingHasOneEmptyBucket) {
  const Summary summary =
      Parsed(RunOpOrDie("HistogramSummary", {Tensor::Scalar("h"), Tensor(DType::kFloat, {0})}));
  const HistogramProto& h = summary.value(0).histo();
  EXPECT_EQ(h.min(), DBL_MAX);
  EXPECT_EQ(h.max(), -DBL_MAX);
  ASSERT_EQ(h.bucket_size(), 1);
  EXPECT_EQ(h.bucket(0), 0);
  EXPECT_EQ(h.bucket_limit(0), DBL_MAX);
}

TEST(SummaryOps, AHistogramTakesTheLargestNumbersButNoNanOrInfinity) {
  EXPECT_OK(
      RunOp("HistogramSummary", {Tensor::Scalar("h"), Tensor::Vector<double>({DBL_MAX, -DBL_MAX})})
          .status);
  EXPECT_THAT(RunOp("HistogramSummary", {Tensor::Scalar("h"), Tensor::Vector<float>({NAN})}).status,
              IsError(StatusCode::kInvalidArgument, "Nan in summary histogram for: op"));
  EXPECT_THAT(
      RunOp("HistogramSummary", {Tensor::Scalar("h"), Tensor::Vector<float>({INFINITY})}).status,
      IsError(StatusCode::kInvalidArgument, "Infinity in summary histogram for: op"));
}

TEST(SummaryOps, MergeKeepsAllValuesAndRefusesEqualTags) {
  const Tensor a = RunOpOrDie("ScalarSummary", {Tensor::Scalar("a"), Tensor::Scalar(1.0f)});
  const Tensor b = RunOpOrDie("ScalarSummary", {Tensor::Scalar("b"), Tensor::Scalar(2.0f)});
  const Summary merged = Parsed(RunOpOrDie("MergeSummary", {a, b}));
  ASSERT_EQ(merged.value_size(), 2);
  EXPECT_EQ(merged.value(1).tag(), "b");
  EXPECT_THAT(RunOp("MergeSummary", {a, a}).status,
              IsError(StatusCode::kInvalidArgument, "Duplicate tag a found in summary inputs "));
  EXPECT_THAT(RunOp("MergeSummary", {Tensor::Scalar("\xff")}).status,
              IsError(StatusCode::kInvalidArgument, "Could not parse"));
}

}  // namespace
}  // namespace tenon::testing
