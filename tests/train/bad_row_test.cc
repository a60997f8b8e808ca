// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/base/strings.h"
#include "tests/data/sample_files.h"
#include "train/glm/fit_glm.h"

namespace tenon {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

/// A table of 4,000 rows with line ends in the quotes of every seventh, so that a row is not a
/// line; row `bad` is "2,0".
std::string TableWithBadRow(int64_t bad, int64_t* line) {
  std::string text = "y,x,note\n";
  int64_t lines = 1;
  for (int64_t i = 0; i < 4000; ++i) {
    if (i == bad) *line = lines + 1;
    StrAppend(&text, i == bad ? 2 : i % 2, ",", i == bad ? 0 : 1 + i % 13,
              i % 7 == 0 ? ",\"a\nb\"\n" : ",c\n");
    lines += i % 7 == 0 ? 2 : 1;
  }
  return text;
}

std::string MessageOf(const std::string& formula, const std::string& file, GlmOptions options) {
  options.unit_bytes = 700;
  return std::string(Message(FitGlm(formula, {file}, options).status()));
}

TEST(BadRowTest, MessagesNameTheLineWhereverAUnitBegins) {
  const TemporaryFolder folder;
  for (const int64_t bad : {0, 1, 511, 512, 999, 2345, 3999}) {
    SCOPED_TRACE(bad);
    int64_t line = 0;
    const std::string file = folder.Write("t.csv", TableWithBadRow(bad, &line));
    std::string shown = StrCat(line);
    if (line >= 1000) shown.insert(shown.size() - 3, ",");
    const std::string place = StrCat("t.csv:", shown, ": column ");
    EXPECT_THAT(MessageOf("y ~ x", file, {.family = GlmFamily::kBinomial}),
                HasSubstr(StrCat(place, "1 (y): '2' is no response of family binomial, ",
                                 "wanted 0 to 1\n  2,0,")));
    EXPECT_THAT(MessageOf("y ~ log(x)", file, {}),
                HasSubstr(StrCat(place, "2 (x): '0' makes log(x) -infinite\n  2,0,")));
    EXPECT_THAT(MessageOf("y ~ I(1 / x):x", file, {}), HasSubstr(place));
    EXPECT_THAT(MessageOf("I(1 - y) ~ x", file, {.family = GlmFamily::kBinomial}),
                HasSubstr(StrCat(place, "1 (y): '2' makes I(1 - y) -1 of family binomial")));
    EXPECT_THAT(MessageOf("I(y / 2) ~ x", file, {.weights = "y"}), ::testing::IsEmpty());
    EXPECT_THAT(MessageOf("x ~ cut(log(x), -1, 5)", file, {}),
                HasSubstr("'0' makes cut(log(x), -1, 5) -infinite"));
  }
}

TEST(BadRowTest, TheFirstOfManyIsNamed) {
  const TemporaryFolder folder;
  std::string text = "y,x\n";
  for (int i = 0; i < 3000; ++i) StrAppend(&text, i > 1000 ? -i : i, ",", i, "\n");
  const std::string file = folder.Write("t.csv", text);
  EXPECT_THAT(
      MessageOf("y ~ x", file, {.family = GlmFamily::kPoisson}),
      EndsWith("t.csv:1,003: column 1 (y): '-1001' is no response of family poisson, wanted "
               "0 or more\n  -1001,1001"));
}

TEST(BadRowTest, MissingValuesAreNoMistake) {
  const TemporaryFolder folder;
  const std::string file = folder.Write("t.csv", "y,x\n1,1\n2,NA\n0,3\n1,2\n");
  EXPECT_TRUE(FitGlm("y ~ log(x)", {file}).ok());
}

}  // namespace
}  // namespace tenon
