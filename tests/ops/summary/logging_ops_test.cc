// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <unistd.h>

#include "core/tensor/variant.h"
#include "data/files/file.h"
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
  EXPECT_THAT(RunOp("PrintV2", {Tensor::Scalar("")}, {{"output_stream", "printer"}}).status,
              IsError(StatusCode::kInvalidArgument, "Unknown output stream: printer"));
}

TEST(LoggingOps, PrintV2WritesAtTheEndOfAFile) {
  const std::string path = StrCat(::testing::TempDir(), "/printed_", ::getpid());
  const auto print = [&](const std::string& where, const char* text) {
    return RunOp("PrintV2", {Tensor::Scalar(text)}, {{"output_stream", "file://" + where}}).status;
  };
  EXPECT_OK(print(path, "one"));
  EXPECT_OK(print(path, "two"));
  EXPECT_EQ(ReadFileToString(path).value(), "one\ntwo\n");
  EXPECT_OK(RemoveFile(path));
  EXPECT_THAT(print(path + "/below", "one"), IsError(StatusCode::kNotFound, path));
}

TEST(LoggingOps, VariantsThatHoldNumbersArePrinted) {
  Tensor t = Tensor::Vector<Variant>(std::vector<Variant>(5));
  t.data<Variant>()[0].value = DecodeVariant({"int", std::string("\7\0\0\0", 4), {}}).value();
  t.data<Variant>()[1].value = DecodeVariant({"bool", "\1", {}}).value();
  t.data<Variant>()[3].value = DecodeVariant({"float", "\xab\xaa\xaa>", {}}).value();
  t.data<Variant>()[4].value = DecodeVariant({"double", "UUUUUU\xd5?", {}}).value();
  EXPECT_EQ(RunOpOrDie("StringFormat", {t},
                       {{"template", "%s"}, {"placeholder", "%s"}, {"summarize", int64_t{5}}})
                .scalar<TString>(),
            "[<7> <1> <[empty]> <0.333333343> <0.33333333333333331>]");
  const Tensor texts = RunOpOrDie("AsString", {t});
  EXPECT_EQ(texts.data<TString>()[0], "Variant<type: int value: 7>");
  EXPECT_EQ(texts.data<TString>()[3], "Variant<type: float value: 0.333333343>");
}

}  // namespace
}  // namespace tenon::testing
