// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/testing/graph_session.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

std::string TextOf(const Tensor& value, AttributeMap attrs = {}) {
  const Tensor text = RunOpOrDie("AsString", {value}, std::move(attrs));
  return text.valid() ? std::string(text.data<TString>()[0]) : "";
}

TEST(StringOps, JoinRepeatsScalars) {
  const Tensor joined =
      RunOpOrDie("StringJoin", {Tensor::Vector<std::string>({"a", "b"}), Tensor::Scalar("x")},
                 {{"separator", "_"}});
  EXPECT_EQ(joined.data<TString>()[0], "a_x");
  EXPECT_EQ(joined.data<TString>()[1], "b_x");
  EXPECT_THAT(
      RunOp("StringJoin",
            {Tensor::Vector<std::string>({"a", "b"}), Tensor::Vector<std::string>({"a"})}, {}, true)
          .status,
      IsError(StatusCode::kInvalidArgument, "Input shapes do not match"));
  EXPECT_EQ(RunOpOrDie("StringJoin", {}, {{"N", 0}}).scalar<TString>(), "");
}

TEST(StringOps, AsStringWritesAsPrintfDoes) {
  EXPECT_EQ(TextOf(Tensor::Scalar(1.5f)), "1.500000");
  EXPECT_EQ(TextOf(Tensor::Scalar(1.5f), {{"precision", 2}}), "1.50");
  EXPECT_EQ(TextOf(Tensor::Scalar(1.5f), {{"shortest", true}}), "1.5");
  EXPECT_EQ(TextOf(Tensor::Scalar(1.5), {{"scientific", true}}), "1.500000e+00");
  EXPECT_EQ(TextOf(Tensor::Scalar<int32_t>(-42)), "-42");
  EXPECT_EQ(TextOf(Tensor::Scalar<int32_t>(42), {{"width", 5}, {"fill", "0"}}), "00042");
  EXPECT_EQ(TextOf(Tensor::Scalar<uint64_t>(~uint64_t{0})), "18446744073709551615");
  EXPECT_EQ(TextOf(Tensor::Scalar(true)), "true");
  EXPECT_EQ(TextOf(Tensor::Scalar("kept")), "kept");
}

TEST(StringOps, AsStringRefusesFormatsThatMakeNoSense) {
  const auto fails = [](const Tensor& t, AttributeMap attrs) {
    EXPECT_THAT(RunOp("AsString", {t}, std::move(attrs)).status,
                IsError(StatusCode::kInvalidArgument, ""));
  };
  fails(Tensor::Scalar(1.0f), {{"scientific", true}, {"shortest", true}});
  fails(Tensor::Scalar<int32_t>(1), {{"precision", 2}});
  fails(Tensor::Scalar(1.0f), {{"fill", "%n"}});
  fails(Tensor::Scalar(1.0f), {{"fill", "%"}});
  fails(Tensor::Scalar(1.0f), {{"width", 1 << 30}});
}

TEST(StringOps, NumbersAreRead) {
  const Tensor text = Tensor::Vector<std::string>(
      {" 1.5", "-2e3", "inf", "-0x1A", "  ", "1e39", "0x10000000000000000000000000000"});
  EXPECT_THAT(Numbers(RunOpOrDie("StringToNumber", {text})),
              ElementsAre(1.5, -2000, HUGE_VAL, -26, 0, HUGE_VAL, 0x1p112));
  const char* const long_text = "1.000000000000000000000000000000";
  for (const char* bad : {"", "infinity", "0x", "0x1.8", "1e", long_text}) {
    EXPECT_THAT(RunOp("StringToNumber", {Tensor::Scalar(bad)}).status,
                IsError(StatusCode::kInvalidArgument, StrCat("convert string: ", bad)));
  }
  EXPECT_EQ(RunOpOrDie("StringToNumber", {Tensor::Scalar("-9")}, {{"out_type", DType::kInt64}})
                .scalar<int64_t>(),
            -9);
  for (const char* bad : {"", "x", "1.5", "99999999999"}) {
    EXPECT_THAT(
        RunOp("StringToNumber", {Tensor::Scalar(bad)}, {{"out_type", DType::kInt32}}).status,
        IsError(StatusCode::kInvalidArgument, StrCat("convert string: ", bad)));
  }
}

TEST(StringOps, RegexesMatchTheWholeText) {
  const Tensor in = Tensor::Vector<std::string>({"abc", "xabc", "/tmp/model.ckpt-1"});
  const Tensor found = RunOpOrDie("StaticRegexFullMatch", {in}, {{"pattern", "a.*"}});
  EXPECT_TRUE(found.data<bool>()[0]);
  EXPECT_FALSE(found.data<bool>()[1]);
  EXPECT_TRUE(RunOpOrDie("RegexFullMatch", {in, Tensor::Scalar("[a-z/.0-9-]*")}).data<bool>()[2]);
  EXPECT_THAT(RunOp("StaticRegexFullMatch", {in}, {{"pattern", "("}}).status,
              IsError(StatusCode::kInvalidArgument, "Invalid pattern: ("));
  EXPECT_THAT(RunOp("RegexFullMatch", {in, Tensor::Scalar("(")}).status,
              IsError(StatusCode::kInvalidArgument, "Invalid pattern: ("));
}

TEST(StringOps, ShardNames) {
  const Tensor base = Tensor::Scalar("m"), n = Tensor::Scalar<int32_t>(12);
  EXPECT_EQ(RunOpOrDie("ShardedFilename", {base, Tensor::Scalar<int32_t>(3), n}).scalar<TString>(),
            "m-00003-of-00012");
  EXPECT_EQ(RunOpOrDie("ShardedFilespec", {base, n}).scalar<TString>(),
            std::string("m-") + std::string(5, '?') + "-of-00012");
}

}  // namespace
}  // namespace tenon::testing
