// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

// Lines of numbers, numbers as bytes, and serialized tensors.

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

OpResult DecodeCsv(const std::vector<std::string>& lines, AttributeMap attrs = {}) {
  attrs.Set("OUT_TYPE", DTypeVector{DType::kInt64, DType::kFloat, DType::kString});
  return RunOp("DecodeCSV",
               {Tensor::Vector(lines), Tensor::Scalar<int64_t>(7), Tensor(DType::kFloat, {0}),
                Tensor::Vector({"none"})},
               attrs);
}

TEST(DecodeCsvTest, FieldsInQuotesHoldAnything) {
  const OpResult result = DecodeCsv({"1,2.5,a b", "-2,1e3,\"a,\"\"b\"\"\n\"", ",0,"});
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_THAT(result.outputs[0].flat<int64_t>(), ElementsAre(1, -2, 7));
  EXPECT_THAT(result.outputs[1].flat<float>(), ElementsAre(2.5f, 1e3f, 0));
  EXPECT_THAT(result.outputs[2].flat<TString>(), ElementsAre("a b", "a,\"b\"\n", "none"));
}

TEST(DecodeCsvTest, SaysWhatIsWrongWithTheFirstBadLine) {
  const auto error = [](std::string line) {
    return std::string(DecodeCsv({"1,2,3", line, "x"}).status.message());
  };
  EXPECT_THAT(error("1,2"), HasSubstr("Expect 3 fields but have 2 in record 1"));
  EXPECT_THAT(error("1,2,3,4"), HasSubstr("Expect 3 fields but have 4 in record 1"));
  EXPECT_THAT(error("1,2,3,\"a,b\",5,"), HasSubstr("Expect 3 fields but have 6 in record 1"));
  EXPECT_THAT(error("1,2,3,\"4"), HasSubstr("has to end with quote"));
  EXPECT_THAT(error("1,,3"), HasSubstr("Field 1 is required but missing in record 1"));
  EXPECT_THAT(error("1.5,2,3"), HasSubstr("Field 0 in record 1 is not a valid int64: 1.5"));
  EXPECT_THAT(error("1,2,a\"b"), HasSubstr("Unquoted fields cannot have quotes"));
  EXPECT_THAT(error("1,2,\"a\"b\""), HasSubstr("has to be escaped"));
  EXPECT_THAT(error("1,2,\""), HasSubstr("has to end with quote"));
  EXPECT_THAT(error("1,2,\"\"\""), HasSubstr("has to end with quote"));
}

TEST(DecodeCsvTest, TakesOnlyTheColumnsAskedFor) {
  const OpResult result =
      DecodeCsv({"9,1,\"x\",2,y,NA", "9,NA,x,2,y,\"q\"\"\""},
                {{"select_cols", std::vector<int64_t>{1, 3, 5}}, {"na_value", "NA"}});
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_THAT(result.outputs[0].flat<int64_t>(), ElementsAre(1, 7));
  EXPECT_THAT(result.outputs[2].flat<TString>(), ElementsAre("none", "q\""));
  EXPECT_FALSE(DecodeCsv({"1,2"}, {{"select_cols", std::vector<int64_t>{0, 2, 1}}}).status.ok());
  EXPECT_FALSE(DecodeCsv({"1,2"}, {{"field_delim", ""}}).status.ok());
}

TEST(DecodeCsvTest, ManyLinesGiveTheErrorOfTheFirstOne) {
  std::vector<std::string> lines(200'000, "1,2,three");
  EXPECT_TRUE(DecodeCsv(lines).status.ok());
  lines[150'000] = "";
  lines[77] = "a,2,3";
  EXPECT_THAT(std::string(DecodeCsv(lines).status.message()),
              HasSubstr("record 77 is not a valid"));
}

TEST(DecodeRawTest, BothOrdersOfBytes) {
  const Tensor bytes = Tensor::Vector({std::string("\1\2\3\4", 4), std::string("\0\0\0\1", 4)});
  EXPECT_THAT(RunOpOrDie("DecodeRaw", {bytes}, {{"out_type", DType::kInt16}}).flat<int16_t>(),
              ElementsAre(0x201, 0x403, 0, 0x100));
  EXPECT_THAT(
      RunOpOrDie("DecodeRaw", {bytes}, {{"out_type", DType::kInt32}, {"little_endian", false}})
          .flat<int32_t>(),
      ElementsAre(0x1020304, 1));
  EXPECT_FALSE(RunOp("DecodeRaw", {bytes}, {{"out_type", DType::kDouble}}).status.ok());
}

TEST(DecodePaddedRawTest, AddsZerosAndCutsOff) {
  const Tensor bytes =
      Tensor::Vector({std::string("\1\2\3", 3), std::string(9, '\1'), std::string()});
  const auto run = [&](int length, bool little_endian) {
    return RunOp("DecodePaddedRaw", {bytes, Tensor::Scalar(length)},
                 {{"out_type", DType::kInt16}, {"little_endian", little_endian}});
  };
  EXPECT_THAT(run(4, true).outputs[0].flat<int16_t>(), ElementsAre(0x201, 3, 0x101, 0x101, 0, 0));
  EXPECT_THAT(run(4, false).outputs[0].flat<int16_t>(),
              ElementsAre(0x102, 0x300, 0x101, 0x101, 0, 0));
  EXPECT_FALSE(run(3, true).status.ok());
  EXPECT_FALSE(run(-2, true).status.ok());
}

TEST(SerializeTensorTest, ThereAndBack) {
  for (const Tensor& t : {Tensor::Of<float>({2, 2}, {1, 2, 3, 4}), Tensor::Vector({"a", "", "b"}),
                          Tensor::Scalar(true)}) {
    const Tensor bytes = RunOpOrDie("SerializeTensor", {t});
    EXPECT_TRUE(RunOpOrDie("ParseTensor", {bytes}, {{"out_type", t.dtype()}}).Equals(t));
    EXPECT_FALSE(RunOp("ParseTensor", {bytes}, {{"out_type", DType::kInt8}}).status.ok());
  }
  EXPECT_FALSE(
      RunOp("ParseTensor", {Tensor::Scalar("\n")}, {{"out_type", DType::kInt8}}).status.ok());
}

}  // namespace
}  // namespace tenon::testing
