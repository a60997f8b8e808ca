// SPDX-License-Identifier: Apache-2.0
#include "train/glm/report/print_glm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "tests/train/flights_fit.h"
#include "tests/train/r_fits.h"
#include "train/glm/text/number_text.h"

namespace tenon {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> LinesOf(const std::string& text) { return absl::StrSplit(text, '\n'); }

/// The line that begins with these words, with single blanks between words.
std::string LineOf(const std::string& text, const std::string& beginning) {
  for (const std::string& line : LinesOf(text)) {
    const std::string words =
        Join(std::vector<std::string>(absl::StrSplit(line, ' ', absl::SkipEmpty())), " ");
    if (words.starts_with(beginning)) return words;
  }
  return "";
}

int64_t WidestOf(const std::string& text) {
  int64_t width = 0;
  for (const std::string& line : LinesOf(text)) width = std::max(width, WidthOf(line));
  return width;
}

TEST(PrintGlmTest, TheFlightsLookAsInTheSample) {
  const std::string text = FormatGlm(FlightsFit(), {.coefficients_file = "late/coefficients.csv"});
  if (text != ContentOf(SamplePath("glm/flights.txt"))) {
    ADD_FAILURE() << "not as tests/data/glm/flights.txt:\n" << text;
  }
}

TEST(PrintGlmTest, TheLargestStatisticsAreShownAndTheReferencesOfTheirFactors) {
  GlmResult fit = FlightsFit();
  const std::string text = FormatGlm(fit);
  EXPECT_LE(WidestOf(text), 100);
  EXPECT_EQ(LineOf(text, "hour 0"),
            "hour 0.11753 0.00114 102.81 < 2e-16 0.1153 0.1198 0.5479 1.125");
  EXPECT_EQ(LineOf(text, "carrier 9E"), "carrier 9E 0 reference 13,959");
  EXPECT_EQ(LineOf(text, "carrier AA"),
            "carrier AA -0.3837 0.0340 -11.27 < 2e-16 -0.450 -0.317 -0.1139 0.681 25,586");
  EXPECT_EQ(LineOf(text, "dest ABQ"), "");  // none of the 20 largest is a dest
  EXPECT_EQ(LineOf(text, "..."), "... 124 more in coefficients.csv; --all prints every one");
  const std::string all = FormatGlm(fit, {.all = true});
  EXPECT_EQ(LineOf(all, "dest ABQ"), "dest ABQ 0 reference 203");
  EXPECT_EQ(LineOf(all, "..."), "");
  for (const GlmCoefficient& c : fit.coefficients) {
    EXPECT_NE(LineOf(all, c.level.empty() ? c.term + " " : c.term + " " + c.level + " "), "")
        << c.name;
  }
  EXPECT_LE(WidestOf(all), 100);
}

TEST(PrintGlmTest, ManyTermsAreLeftToAFile) {
  GlmResult fit = FlightsFit();
  const size_t before = fit.terms.size();
  for (int i = 0; i < 30; ++i) {
    fit.terms.push_back({StrCat("x", i), 1, i == 7 ? 1e6 : 0.01 * i, 0.5, -0.3});
  }
  const std::string text = FormatGlm(fit);
  EXPECT_NE(LineOf(text, "x7 "), "");
  EXPECT_EQ(LineOf(text, "x0 "), "");
  EXPECT_THAT(text, HasSubstr(StrCat("... ", before + 10, " more in terms.csv")));
  EXPECT_NE(LineOf(FormatGlm(fit, {.all = true}), "x0 "), "");
}

TEST(PrintGlmTest, DecimalPointsStandBelowEachOther) {
  const std::vector<std::string> lines = LinesOf(FormatGlm(RFit("cars")));
  const auto line_with = [&lines](const std::string& beginning) {
    return *std::find_if(lines.begin(), lines.end(),
                         [&](const std::string& line) { return line.starts_with(beginning); });
  };
  const std::string intercept = line_with("(Intercept)"), wt = line_with("wt"),
                    hp = line_with("hp");
  EXPECT_EQ(intercept.find('.'), wt.find('.'));
  EXPECT_EQ(intercept.find('.'), hp.find('.'));
  EXPECT_THAT(intercept, HasSubstr("34.462 "));
  EXPECT_THAT(hp, HasSubstr("-0.03424 "));
}

TEST(PrintGlmTest, LinearModelsHaveTAndF) {
  GlmResult fit = RFit("cars");
  fit.coefficients[4].sum_of = "0.4535924 x wt";
  const std::string text = FormatGlm(fit);
  EXPECT_EQ(LineOf(text, "Term Level"), "Term Level Estimate Std. error t Pr(>|t|) 2.5 % 97.5 %");
  EXPECT_EQ(LineOf(text, "hp -0"), "hp -0.03424 0.01770 -1.93 0.0644 -0.0707 0.0022");
  EXPECT_EQ(LineOf(text, "tons"), "tons NA = 0.4535924 x wt");
  EXPECT_EQ(LineOf(text, "cyl 2"), "cyl 2 2.59 0.0953 R² 0.8638 adjusted R² 0.8311");
  EXPECT_THAT(text, HasSubstr("Residual standard error 2.477 on 25 df\n"));
  EXPECT_THAT(text, HasSubstr("F 26.42 on 6 and 25 df, p = 1.13e-09\n"));
  EXPECT_THAT(text, Not(HasSubstr("ratio")));
}

TEST(PrintGlmTest, WhatHasNoEstimateSaysWhy) {
  GlmResult fit = FlightsFit();
  GlmCoefficient& distance = *std::find_if(fit.coefficients.begin(), fit.coefficients.end(),
                                           [](const auto& c) { return c.term == "distance"; });
  distance.status = CoefficientStatus::kAliased;
  distance.sum_of = "0.621371 x km + 2 x (Intercept)";
  GlmCoefficient lex = {.term = "dest", .level = "LEX", .name = "destLEX"};
  lex.status = CoefficientStatus::kSeparated;
  lex.rows = 1;
  fit.coefficients.push_back(lex);
  const std::string text = FormatGlm(fit);
  EXPECT_EQ(LineOf(text, "distance NA"), "distance NA = 0.621371 x km + 2 x (Intercept)");
  EXPECT_EQ(LineOf(text, "dest LEX"), "dest LEX NA left out: its responses are all alike 1");
  distance.sum_of.clear();
  EXPECT_EQ(LineOf(FormatGlm(fit), "distance NA"), "distance NA determined by the terms before it");
  EXPECT_LE(WidestOf(text), 100);
}

TEST(PrintGlmTest, APenaltyHasNoStandardErrorsAndSaysWhy) {
  GlmResult fit = FlightsFit();
  fit.lambda = 0.001;
  fit.alpha = 1;
  fit.objective = "-log-likelihood / n + 0.001 x sum of absolute standardised coefficients";
  fit.terms.clear();
  for (GlmCoefficient& c : fit.coefficients) {
    c.standard_error = c.statistic = c.p_value = c.log10_p = c.lower = c.upper = kNotGiven;
    if (c.term != "dest" || c.level < "N" || c.status == CoefficientStatus::kReference) continue;
    c.status = CoefficientStatus::kZero;
    c.estimate = 0;
  }
  const std::string text = FormatGlm(fit);
  EXPECT_THAT(text, HasSubstr("penalty  alpha 1, lambda 0.001; least: -log-likelihood / n"));
  EXPECT_THAT(text, HasSubstr("no standard errors, p values and intervals"));
  EXPECT_EQ(LineOf(text, "Term Level"), "Term Level Estimate Per SD Odds ratio Rows");
  EXPECT_THAT(text, Not(HasSubstr("Pr(>")));
  EXPECT_EQ(LineOf(text, "hour 0.11753"), "hour 0.11753 0.5479 1.125");
  EXPECT_THAT(LineOf(text, "..."), HasSubstr(" are 0) in coefficients.csv"));
}

TEST(PrintGlmTest, LongNamesAndNarrowTerminalsKeepTheWidth) {
  GlmResult fit = FlightsFit();
  for (GlmCoefficient& c : fit.coefficients) {
    if (c.term != "carrier") continue;
    c.term = "C(an_interaction_of_columns):C(which has a rather long name)";
    c.level = "空港 " + c.level + "\n in a name that goes on and on, " + c.level;
  }
  for (const int64_t width : {72, 80, 100, 140}) {
    const std::string text = FormatGlm(fit, {.width = width});
    EXPECT_LE(WidestOf(text), width) << text;
    EXPECT_THAT(text, HasSubstr("…"));
    EXPECT_THAT(text, HasSubstr("-0.3837"));
  }
}

TEST(PrintGlmTest, OnlyWhatThereIsIsShown) {
  GlmResult fit;
  fit.formula = "y ~ 1";
  fit.method = "newton";
  fit.coefficients = {{.term = "(Intercept)", .estimate = 1.5}};
  const std::string text = FormatGlm(fit);
  EXPECT_THAT(text, HasSubstr("NOT CONVERGED"));
  EXPECT_EQ(LineOf(text, "(Intercept)"), "(Intercept) 1.5000");
  EXPECT_THAT(text, Not(HasSubstr("nan")));
  EXPECT_THAT(text, Not(HasSubstr("AIC")));
  fit.rows_missing = 1234;
  fit.missing_by_column = {{"temp", 1200}, {"wind_speed", 40}, {"hour", 0}};
  fit.files = {{"a.csv", 1'500'000}, {"b.csv", 500'000}};
  fit.rows_used = 1;
  EXPECT_THAT(FormatGlm(fit), HasSubstr("1 row used of 2 files (2 MB); 1,234 dropped, with values "
                                        "missing: temp 1,200, wind_speed 40\n"));
}

}  // namespace
}  // namespace tenon
