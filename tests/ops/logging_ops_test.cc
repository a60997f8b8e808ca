// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "ops/summary/tensor_text.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

TEST(TensorText, ShowsTheFirstElements) {
  const Tensor t = Tensor::Vector<int32_t>({1, 2, 3, 4});
  EXPECT_EQ(SummarizeTensor(t, 2), "1 2...");
  EXPECT_EQ(SummarizeTensor(t, 4), "1 2 3 4");
  EXPECT_EQ(SummarizeTensor(t, -1), "1 2 3 4");
  EXPECT_EQ(SummarizeTensor(t, 0), "...");
  EXPECT_EQ(SummarizeTensor(Tensor::Of<float>({2, 2}, {1, 2.5f, 3, 4}), 3), "[1 2.5][3...]...");
  EXPECT_EQ(SummarizeTensor(Tensor::Scalar(true), 3), "1");
  EXPECT_EQ(SummarizeTensor(Tensor::Scalar("a\n"), 3), "a\\n");
  EXPECT_EQ(SummarizeTensor(Tensor(DType::kFloat, {0, 2}), 3), "");
}

TEST(LoggingOps, AssertShowsItsData) {
  const std::vector<Tensor> data = {Tensor::Scalar("x must be"),
                                    Tensor::Vector<int32_t>({1, 2, 3, 4})};
  const auto run = [&](bool condition) {
    return RunOp("Assert", {Tensor::Scalar(condition), data[0], data[1]}).status;
  };
  EXPECT_OK(run(true));
  EXPECT_THAT(run(false),
              IsError(StatusCode::kInvalidArgument, "assertion failed: [x must be] [1 2 3...]"));
}

TEST(LoggingOps, PrintWritesTheFirstTimesAndPassesItsInputOn) {
  ::testing::internal::CaptureStderr();
  const Tensor out = RunOpOrDie("Print", {Tensor::Scalar(7.0f), Tensor::Vector<int32_t>({1, 2})},
                                {{"message", "values: "}});
  RunOpOrDie("Print", {Tensor::Scalar(7.0f), Tensor::Scalar("hidden")}, {{"first_n", 0}});
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "values: [1 2]\n");
  EXPECT_EQ(out.scalar<float>(), 7);
}

TEST(LoggingOps, PrintV2WritesTheText) {
  ::testing::internal::CaptureStdout();
  EXPECT_OK(RunOp("PrintV2", {Tensor::Scalar("hello")}, {{"output_stream", "stdout"}}).status);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "hello\n");
  EXPECT_THAT(RunOp("PrintV2", {Tensor::Scalar("")}, {{"output_stream", "file:///etc/x"}}).status,
              IsError(StatusCode::kUnimplemented, "cannot print to"));
}

}  // namespace
}  // namespace tenon::testing
