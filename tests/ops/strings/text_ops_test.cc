// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/testing/graph_session.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

// Ops that change, cut, join and hash texts. The hashes were computed by TensorFlow.

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;
using Texts = std::vector<std::string>;

Texts TextsOf(const Tensor& t) {
  Texts texts;
  for (const TString& text : t.flat<TString>()) texts.emplace_back(text);
  return texts;
}

/// What the op makes of texts and perhaps more inputs.
Texts Change(std::string_view op, const Texts& texts, const std::vector<Tensor>& more = {},
             const AttributeMap& attrs = {}) {
  std::vector<Tensor> inputs = {Tensor::Vector(texts)};
  inputs.insert(inputs.end(), more.begin(), more.end());
  return TextsOf(RunOpOrDie(op, inputs, attrs));
}

void ExpectTextRefused(std::string_view op, const std::vector<Tensor>& inputs,
                       const AttributeMap& attrs, std::string_view text) {
  EXPECT_THAT(RunOp(op, inputs, attrs, /*hide_inputs=*/true).status,
              IsError(StatusCode::kInvalidArgument, text));
}

TEST(TextChangesTest, LengthsCasesAndSpace) {
  const Tensor green = Tensor::Vector<std::string>({"grün", ""});
  EXPECT_THAT(Numbers(RunOpOrDie("StringLength", {green})), ElementsAre(5, 0));
  EXPECT_THAT(Numbers(RunOpOrDie("StringLength", {green}, {{"unit", "UTF8_CHAR"}})),
              ElementsAre(4, 0));
  EXPECT_THAT(Change("StringUpper", {"aÜb", "grün"}), ElementsAre("AÜB", "GRüN"));
  const AttributeMap utf8 = {{"encoding", "utf-8"}};
  EXPECT_THAT(Change("StringUpper", {"grün"}, {}, utf8), ElementsAre("GRÜN"));
  EXPECT_THAT(Change("StringLower", {"GRÜN", "a\xff"}, {}, utf8),
              ElementsAre("grün", "a\xEF\xBF\xBD"));
  EXPECT_THAT(Change("StringStrip", {" a b\t\n", "  "}), ElementsAre("a b", ""));
  ExpectTextRefused("StringLower", {green}, {{"encoding", "latin1"}}, "received latin1");
}

TEST(TextChangesTest, Base64ThereAndBack) {
  const Texts plain = {"", "a", "ab", "abc", "\xff\xfe"}, coded = {"", "YQ", "YWI", "YWJj", "__4"};
  EXPECT_EQ(Change("EncodeBase64", plain), coded);
  EXPECT_EQ(Change("DecodeBase64", coded), plain);
  EXPECT_THAT(Change("EncodeBase64", {"a", "ab"}, {}, {{"pad", true}}),
              ElementsAre("YQ==", "YWI="));
  EXPECT_THAT(Change("DecodeBase64", {"YQ==", "YWI="}), ElementsAre("a", "ab"));
  for (const char* bad : {"a", "YQ=", "YW+j", "YW j", "YQ==YQ=="}) {
    ExpectTextRefused("DecodeBase64", {Tensor::Scalar(bad)}, {}, "ase64");
  }
}

TEST(TextChangesTest, RegexReplace) {
  const std::vector<Tensor> swap = {Tensor::Scalar("(a)(.)"), Tensor::Scalar("\\2\\1")};
  EXPECT_THAT(Change("RegexReplace", {"abac", "x"}, swap), ElementsAre("baca", "x"));
  EXPECT_THAT(Change("RegexReplace", {"abac"}, swap, {{"replace_global", false}}),
              ElementsAre("baac"));
  EXPECT_THAT(Change("StaticRegexReplace", {"aba"}, {}, {{"pattern", "a"}, {"rewrite", "-"}}),
              ElementsAre("-b-"));
  ExpectTextRefused("RegexReplace", {Tensor::Scalar("a"), Tensor::Scalar("("), Tensor::Scalar("")},
                    {}, "Invalid pattern");
}

/// The parts of each text; the sparse matrix must be whole.
std::vector<Texts> Split(std::string_view op, const Texts& texts, std::string_view separator,
                         const AttributeMap& attrs = {}) {
  const OpResult result = RunOp(op, {Tensor::Vector(texts), Tensor::Scalar(separator)}, attrs);
  EXPECT_OK(result.status);
  std::vector<Texts> parts(texts.size());
  const Texts values = TextsOf(result.outputs[1]);
  const int64_t* const indices = result.outputs[0].data<int64_t>();
  size_t columns = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    Texts& row = parts[indices[2 * i]];
    EXPECT_EQ(indices[2 * i + 1], static_cast<int64_t>(row.size()));
    row.push_back(values[i]);
    columns = std::max(columns, row.size());
  }
  EXPECT_THAT(Numbers(result.outputs[2]), ElementsAre(texts.size(), columns));
  return parts;
}

TEST(PartsTest, SplitsAtDelimitersAndSeparators) {
  const Texts texts = {"a, b", "", ",c,"};
  EXPECT_THAT(Split("StringSplit", texts, ", "), ElementsAre(Texts{"a", "b"}, Texts{}, Texts{"c"}));
  EXPECT_THAT(Split("StringSplit", texts, ",", {{"skip_empty", false}}),
              ElementsAre(Texts{"a", " b"}, Texts{}, Texts{"", "c", ""}));
  EXPECT_THAT(Split("StringSplit", {"ab"}, ""), ElementsAre(Texts{"a", "b"}));
  EXPECT_THAT(Split("StringSplitV2", texts, ","),
              ElementsAre(Texts{"a", " b"}, Texts{""}, Texts{"", "c", ""}));
  EXPECT_THAT(Split("StringSplitV2", {" a  b c ", " "}, ""),
              ElementsAre(Texts{"a", "b", "c"}, Texts{}));
  EXPECT_THAT(Split("StringSplitV2", {" a  b c "}, "", {{"maxsplit", 1}}),
              ElementsAre(Texts{"a", "b c "}));
  EXPECT_THAT(Split("StringSplitV2", {" a b"}, "", {{"maxsplit", 0}}), ElementsAre(Texts{" a b"}));
  ExpectTextRefused("StringSplit", {Tensor::Scalar("a"), Tensor::Scalar(",")}, {}, "input");
}

TEST(PartsTest, SubstringsBroadcast) {
  const auto part = [](const Tensor& text, int pos, int len, const char* unit) {
    return TextsOf(
        RunOpOrDie("Substr", {text, Tensor::Scalar(pos), Tensor::Scalar(len)}, {{"unit", unit}}));
  };
  const Tensor texts = Tensor::Vector<std::string>({"abcdef", "grün"});
  EXPECT_THAT(part(texts, 1, 2, "BYTE"), ElementsAre("bc", "r\xC3"));
  EXPECT_THAT(part(texts, -2, 9, "UTF8_CHAR"), ElementsAre("ef", "ün"));
  EXPECT_THAT(part(texts, 4, 1, "UTF8_CHAR"), ElementsAre("e", ""));
  EXPECT_THAT(TextsOf(RunOpOrDie("Substr", {Tensor::Scalar("abc"), Tensor::Vector({0, 1}),
                                            Tensor::Vector({1, 2})})),
              ElementsAre("a", "bc"));
  const auto refuse = [&](const Tensor& pos, const Tensor& len, std::string_view text) {
    ExpectTextRefused("Substr", {texts, pos, len}, {}, text);
  };
  refuse(Tensor::Scalar(6), Tensor::Scalar(1), "pos 6 and len 1 are out of range");
  refuse(Tensor::Scalar(-6), Tensor::Scalar(1), "pos -6");
  refuse(Tensor::Scalar(0), Tensor::Scalar(-1), "len -1");
  refuse(Tensor::Scalar(0), Tensor::Vector({1}), "same shape");
  refuse(Tensor::Vector({0, 0, 0}), Tensor::Vector({1, 1, 1}), "[2] vs. [3]");
}

TEST(PartsTest, SubstringsBroadcastNoMoreThanTwoDimensions) {
  const auto run = [](const Shape& text, const Shape& pos) {
    const Tensor zeros = Tensor::Zeros(DType::kInt32, pos);
    return RunOp("Substr", {Tensor(DType::kString, text), zeros, zeros}).status;
  };
  EXPECT_THAT(run({1, 1, 1}, {3}),
              IsError(StatusCode::kUnimplemented, "broadcast not implemented for 3 dimensions"));
  EXPECT_THAT(run({}, {1, 1, 3}), IsError(StatusCode::kUnimplemented, "for 3 dimensions"));
  EXPECT_OK(run({2, 1}, {1, 3}));
  EXPECT_OK(run({1, 1, 3}, {1, 1, 3}));
  EXPECT_OK(run({1, 1, 3}, {}));
}

TEST(PartsTest, ReduceJoinGoesThroughTheFirstAxisFastest) {
  const Tensor in = Tensor::Of<std::string>({2, 2}, {"a", "b", "c", "d"});
  const auto join = [&](const Tensor& axes, const AttributeMap& attrs = {}) {
    return RunOpOrDie("ReduceJoin", {in, axes}, attrs);
  };
  EXPECT_THAT(TextsOf(join(Tensor::Scalar(0))), ElementsAre("ac", "bd"));
  EXPECT_THAT(TextsOf(join(Tensor::Scalar(-1), {{"separator", "+"}})), ElementsAre("a+b", "c+d"));
  EXPECT_THAT(TextsOf(join(Tensor::Vector({0, 1}))), ElementsAre("acbd"));
  EXPECT_THAT(TextsOf(join(Tensor::Vector({1, 0}))), ElementsAre("abcd"));
  EXPECT_EQ(join(Tensor::Vector({1}), {{"keep_dims", true}}).shape(), (Shape{2, 1}));
  const Tensor none(DType::kString, {0, 2});
  EXPECT_THAT(TextsOf(RunOpOrDie("ReduceJoin", {none, Tensor::Scalar(0)})), ElementsAre("", ""));
  EXPECT_THAT(TextsOf(RunOpOrDie("ReduceJoin", {none, Tensor::Scalar(1)})), ElementsAre());
  EXPECT_THAT(RunOp("ReduceJoin", {in, Tensor::Scalar(2)}, {}, /*hide_inputs=*/true).status,
              IsError(StatusCode::kOutOfRange, "Invalid reduction dimension 2"));
}

TEST(HashBucketsTest, AreThoseOfTensorFlow) {
  const Texts texts = {"", "abc", std::string(100, 'x')};
  const int64_t many = int64_t{1} << 62;
  const auto hash = [&](const char* op, AttributeMap attrs) {
    attrs.Set("num_buckets", many);
    const Tensor t = RunOpOrDie(op, {Tensor::Vector(texts)}, attrs);
    return std::vector<int64_t>(t.data<int64_t>(), t.data<int64_t>() + 3);
  };
  EXPECT_THAT(hash("StringToHashBucketFast", {}),
              ElementsAre(1936946117179621455, 2640714258260161385, 1978794067220662815));
  EXPECT_THAT(hash("StringToHashBucket", {}),
              ElementsAre(105434511174508091, 1046625677629754806, 1482511825497849095));
  EXPECT_THAT(hash("StringToHashBucketStrong", {{"key", std::vector<int64_t>{5, -9}}}),
              ElementsAre(1500210989441672962, 1119230583353022587, 1785115811493606199));
  ExpectTextRefused("StringToHashBucketStrong", {Tensor::Scalar("a")},
                    {{"num_buckets", 2}, {"key", std::vector<int64_t>{1}}}, "2 elements");
}

TEST(StringFormatTest, AsTensorFlowPrints) {
  const auto format = [](const Tensor& t, int64_t summarize) {
    return std::string(
        RunOpOrDie("StringFormat", {t}, {{"template", "<%s>"}, {"summarize", summarize}})
            .scalar<TString>());
  };
  EXPECT_EQ(format(Tensor::Scalar(1.0f / 3), 3), "<0.333333343>");
  EXPECT_EQ(format(Tensor::Scalar(0.1), 3), "<0.1>");
  EXPECT_EQ(format(Tensor::Scalar("a\"b\n"), 3), "<\"a\\\"b\\n\">");
  EXPECT_EQ(format(Tensor::Vector({0, 1, 2, 3, 4, 5, 6}), 3), "<[0 1 2 ... 4 5 6]>");
  EXPECT_EQ(format(Tensor::Vector({0, 1, 2}), 0), "<[ ...]>");
  EXPECT_EQ(format(Tensor::Of<int32_t>({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7}), -1),
            "<[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]>");
  EXPECT_FALSE(RunOp("StringFormat", {Tensor::Scalar(1)}, {{"template", "%s%s"}}).status.ok());
}

}  // namespace
}  // namespace tenon::testing
