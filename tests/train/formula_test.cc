// SPDX-License-Identifier: Apache-2.0
#include "train/glm/formula/formula.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "core/base/strings.h"
#include "tests/data/sample_files.h"
#include "train/glm/formula/design_columns.h"

namespace tenon {
namespace {

using ::testing::ElementsAre;

const std::vector<std::string>& Columns() {
  static const auto* const columns =
      new std::vector<std::string>{"y", "a", "b", "c", "d", "flight no", "w"};
  return *columns;
}

Formula Parse(std::string_view text) {
  auto formula = ParseFormula(text, Columns());
  EXPECT_TRUE(formula.ok()) << text << ": " << formula.status();
  return formula.ok() ? *std::move(formula) : Formula();
}

/// The terms as R's terms() has them, behind 1 or 0 for the intercept.
std::string TermsOf(std::string_view text) {
  const Formula formula = Parse(text);
  std::string terms = formula.has_intercept ? "1" : "0";
  for (const FormulaTerm& term : formula.terms) StrAppend(&terms, " ", term.label);
  return terms;
}

/// The names of the design's columns for a table as make_formulas.R has it.
std::string ColumnsOf(std::string_view text) {
  const Formula formula = Parse(text);
  std::vector<DesignVariable> variables;
  for (const FormulaVariable& variable : formula.variables) {
    DesignVariable made;
    if (variable.label == "a") made = {true, {"p", "q", "r"}, 0};
    if (variable.label == "c") made = {true, {"s", "t"}, 0};
    if (variable.label == "flight no") made = {true, {"7", "8"}, 0};
    variables.push_back(made);
  }
  std::vector<std::string> names;
  for (const DesignColumn& column : ListDesignColumns(formula, variables)) {
    names.push_back(NameOfColumn(formula, variables, column));
  }
  return Join(names, " ");
}

std::string ErrorOf(std::string_view text) {
  return std::string(Message(ParseFormula(text, Columns()).status()));
}

double ValueOf(std::string_view expression, double a, double b) {
  const Formula formula = Parse(StrCat("y ~ I(", expression, ")"));
  const NumericExpression& number = formula.variables[0].number;
  std::vector<const double*> values;
  for (const std::string& column : number.columns) values.push_back(column == "a" ? &a : &b);
  double value;
  number.Evaluate(values, 1, &value);
  return value;
}

TEST(FormulaTest, TermsAreInOrder) {
  EXPECT_EQ(TermsOf("y ~ a + b"), "1 a b");
  EXPECT_EQ(TermsOf("y ~ a:b + c + a*c"), "1 c a a:b a:c");
  EXPECT_EQ(TermsOf("y ~ 0 + a"), "0 a");
  EXPECT_EQ(TermsOf("y ~ a - 1"), "0 a");
  EXPECT_EQ(TermsOf("y ~ 1"), "1");
  EXPECT_EQ(TermsOf("y ~ (a + b + c)^2 - a:b"), "1 a b c a:c b:c");
  EXPECT_EQ(TermsOf("y ~ a/b"), "1 a a:b");
  EXPECT_EQ(TermsOf("y ~ `flight no` + C(a)"), "1 flight no C(a)");
}

TEST(FormulaTest, APointIsAllOtherColumns) {
  EXPECT_EQ(TermsOf("y ~ . - `flight no`"), "1 a b c d w");
  EXPECT_EQ(TermsOf("log(a) ~ ."), "1 y b c d flight no w");
  const Formula formula = ParseFormula("y ~ .", Columns(), {"w"}).value();
  EXPECT_EQ(formula.terms.back().label, "flight no");
  EXPECT_THAT(formula.Columns(), ElementsAre("y", "a", "b", "c", "d", "flight no"));
}

TEST(FormulaTest, Categories) {
  const Formula formula = Parse("y ~ C(a, ref=UA) + C(b, ref = \"a b\"):c + C(d, ref=frequent)");
  ASSERT_EQ(formula.variables.size(), 4u);
  EXPECT_EQ(formula.variables[0].label, "C(a)");
  EXPECT_EQ(formula.variables[0].reference, "UA");
  EXPECT_EQ(formula.variables[1].reference, "a b");
  EXPECT_TRUE(formula.variables[3].frequent_reference);
  EXPECT_EQ(TermsOf("y ~ C(a, ref=1) + C(a):b"), "1 C(a) C(a):b");
  EXPECT_EQ(Parse("y ~ C(a):b + C(a, ref=1)").variables[0].reference, "1");
}

TEST(FormulaTest, CutHashAndOffset) {
  const Formula formula = Parse("y ~ cut(log(a), -1, 0.5, 2) + hash(b, 2^20) + offset(log(c) - 1)");
  EXPECT_EQ(formula.variables[0].label, "cut(log(a), -1, 0.5, 2)");
  EXPECT_THAT(formula.variables[0].breaks, ElementsAre(-1, 0.5, 2));
  EXPECT_EQ(formula.variables[1].num_buckets, 1 << 20);
  ASSERT_EQ(formula.offsets.size(), 1u);
  EXPECT_THAT(formula.Columns(), ElementsAre("y", "a", "b", "c"));
  EXPECT_EQ(formula.terms.size(), 2u);
}

TEST(FormulaTest, LeftSides) {
  const Formula counts = Parse("cbind(a, b - a) ~ c");
  EXPECT_EQ(counts.response.kind, FormulaResponse::Kind::kCounts);
  EXPECT_THAT(counts.response.failures.columns, ElementsAre("b", "a"));
  const Formula equals = Parse("y == \"late\" ~ .");
  EXPECT_EQ(equals.response.kind, FormulaResponse::Kind::kEquals);
  EXPECT_EQ(equals.response.text, "late");
  EXPECT_EQ(equals.terms.size(), 6u);
  EXPECT_EQ(Parse("log(y + 1) ~ a").response.label, "log(y + 1)");
}

TEST(FormulaTest, ArithmeticIsRs) {
  EXPECT_EQ(ValueOf("a^2", 3, 0), 9);
  EXPECT_EQ(ValueOf("-a^2", 3, 0), -9);
  EXPECT_EQ(ValueOf("2^-a", 3, 0), 0.125);
  EXPECT_EQ(ValueOf("2^a^b", 3, 2), 512);
  EXPECT_EQ(ValueOf("a - b - 1", 3, 2), 0);
  EXPECT_EQ(ValueOf("a / b / 2", 12, 2), 3);
  EXPECT_EQ(ValueOf("a + b * a", 3, 2), 9);
  EXPECT_EQ(ValueOf("(a + b) * a", 3, 2), 15);
  EXPECT_EQ(ValueOf("log(a) + log1p(b) + sqrt(a) + exp(b) + abs(-a)", 3, 2),
            std::log(3) + std::log1p(2) + std::sqrt(3) + std::exp(2) + 3);
  EXPECT_TRUE(std::isnan(ValueOf("log(a)", -1, 0)));
}

TEST(FormulaTest, ErrorsSayWhereAndWhat) {
  EXPECT_EQ(ErrorOf("y ~ a + flight_no"),
            "formula, place 9: there is no column 'flight_no'; did you mean 'flight no'?");
  EXPECT_EQ(ErrorOf("y ~ a +"), "formula, place 8: found the end, wanted a term");
  EXPECT_EQ(ErrorOf("y = a"), "formula, place 3: found '=', wanted '~'");
  EXPECT_EQ(ErrorOf("y ~ a b"),
            "formula, place 7: found 'b', wanted an operator (+ - * / : ^) or the end");
  EXPECT_EQ(ErrorOf("y ~ a % b"),
            "formula, place 7: found '%', wanted a name, a number or one of ~ + - * / ^ : ( ) ,");
  EXPECT_EQ(
      ErrorOf("y ~ poly(a, 2)"),
      "formula, place 5: found 'poly', wanted C, cut, hash, offset, I, log, log1p, sqrt, exp or "
      "abs");
  EXPECT_EQ(ErrorOf("y ~ factor(a)"),
            "formula, place 5: found 'factor', wanted C(): C(month) has categories, as R's "
            "factor(month)");
  EXPECT_EQ(ErrorOf("y ~ 2"), "formula, place 5: found '2', wanted 0, 1 or a term");
  EXPECT_EQ(ErrorOf("y ~ `a"), "formula, place 5: the ` has no second one");
  EXPECT_EQ(ErrorOf("y ~ cut(a, 2, 1)"), "formula, place 15: found '1', wanted a number above 2");
  EXPECT_EQ(ErrorOf("y ~ hash(a, 1)"),
            "formula, place 13: found '1', wanted a whole number of buckets, from 2 to 2^30");
  EXPECT_EQ(ErrorOf("y ~ a^b"),
            "formula, place 7: found 'b', wanted a whole number from 1 to 10 "
            "(I(x^2) is the square of numbers)");
  for (const char* text :
       {"y ~ a:offset(b)", "y ~ a + offset(b):c", "y ~ a - offset(b)", "y ~ (a + offset(b))^2"}) {
    EXPECT_THAT(ErrorOf(text), ::testing::HasSubstr("found 'offset', wanted an offset to stand "
                                                    "alone, with + before it"));
  }
  EXPECT_EQ(ErrorOf("1 ~ a"), "formula: the left side, '1', has no column");
  EXPECT_EQ(ErrorOf("y ~ I(1)"), "formula, place 5: 'I(1)' has no column");
  EXPECT_EQ(ErrorOf(""), "formula, place 1: found the end, wanted a number or a column");
  EXPECT_EQ(ErrorOf("y ~ (a"), "formula, place 7: found the end, wanted ')'");
  EXPECT_EQ(ErrorOf("y ~ 1e999"), "formula, place 5: the number is too large");
  const std::string deep = StrCat("y ~ ", std::string(100000, '('), "a");
  EXPECT_EQ(ErrorOf(deep).substr(0, 19), "formula, place 106:");
  EXPECT_NE(ErrorOf(StrCat("y ~ I(", std::string(100000, '-'), "a)")), "");
}

/// Lines "formula<tab>terms<tab>columns", which tests/data/glm/make_formulas.R wrote.
TEST(FormulaTest, RandomFormulasHaveTheTermsOfR) {
  std::ifstream file(SamplePath("glm/formulas.tsv"));
  std::string line;
  int count = 0, with_columns = 0;
  while (std::getline(file, line)) {
    if (line.starts_with('#')) continue;
    const std::vector<std::string> fields = absl::StrSplit(line, '\t');
    ASSERT_EQ(fields.size(), 3u) << line;
    ASSERT_EQ(TermsOf(fields[0]), fields[1]) << line;
    ++count;
    if (fields[2].empty()) continue;
    ASSERT_EQ(ColumnsOf(fields[0]), fields[2]) << line;
    ++with_columns;
  }
  EXPECT_GE(count, 1000);
  EXPECT_GE(with_columns, 300);
}

}  // namespace
}  // namespace tenon
