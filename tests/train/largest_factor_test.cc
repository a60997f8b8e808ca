// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "tests/data/sample_files.h"
#include "tests/train/r_rows.h"
#include "train/glm/fit_glm.h"
#include "train/glm/predict/predict_table.h"
#include "train/glm/report/covariance_file.h"
#include "train/glm/report/print_glm.h"
#include "train/glm/report/write_glm.h"

namespace tenon {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

/// The rows of tests/data/glm/make_levels.R.
std::string RowsOfLevels() {
  std::string rows = "k,x,z,s,y,late,count,twice\n";
  const auto part = [](int64_t i, int64_t a, int64_t b, int64_t m) {
    return static_cast<double>((i * a + b) % m) / static_cast<double>(m);
  };
  for (int64_t i = 0; i < 12120; ++i) {
    const int64_t k = i % 1010;
    const double x = static_cast<double>((i * 37) % 103) / 10;
    const double z = static_cast<double>((i * i * 13 + i * 7) % 997) / 50;
    const char s = "abcd"[(i * 31) / 7 % 4];
    const double noise = part(i, 26544, 12345, 10007);
    const double y = 0.3 * x - 0.1 * z + static_cast<double>(k % 17) / 5 + (1 + x / 5) * noise;
    const bool late = noise + 0.02 * x - 0.01 * z + static_cast<double>(k % 5) / 20 > 0.6;
    const double count = std::floor(noise * 4 + static_cast<double>(k % 3) + x / 5);
    rows += absl::StrFormat("%d,%.1f,%.2f,%c,%.4f,%d,%.0f,%d\n", k, x, z, s, y, late, count, k % 7);
  }
  return rows;
}

struct LevelsModel {
  std::string name, formula, family;
  double deviance = 0;
  struct Test {
    double wald, robust;
  };
  std::map<std::string, Test> terms;
  struct Coefficient {
    double estimate, error, robust;
  };
  std::map<std::string, Coefficient> coefficients;
};

std::vector<LevelsModel> ModelsOfR() {
  std::vector<LevelsModel> models;
  for (const std::vector<std::string>& row : ReadRRows("levels.tsv")) {
    if (row[0] == "model") {
      models.push_back({row[1], row[2], row[3], RNumber(row[4]), {}, {}});
    } else if (row[0] == "term") {
      models.back().terms[row[1]] = {RNumber(row[2]), RNumber(row[3])};
    } else {
      models.back().coefficients[row[1]] = {RNumber(row[2]), RNumber(row[3]), RNumber(row[4])};
    }
  }
  return models;
}

class LargestFactorTest : public ::testing::Test {
 protected:
  StatusOr<GlmResult> Fit(const std::string& formula, const std::string& family,
                          GlmOptions options = {}) const {
    options.family = ParseGlmFamily(family).value();
    return FitGlm(formula, {path_}, options);
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.Write("t.csv", RowsOfLevels());
};

TEST_F(LargestFactorTest, EstimatesErrorsAndTestsAreThoseOfR) {
  const std::vector<LevelsModel> models = ModelsOfR();
  ASSERT_EQ(models.size(), 5u);
  for (const LevelsModel& wanted : models) {
    for (const bool robust : {false, true}) {
      SCOPED_TRACE(wanted.name);
      const auto fit = Fit(wanted.formula, wanted.family, {.robust = robust});
      ASSERT_TRUE(fit.ok()) << fit.status();
      EXPECT_TRUE(fit->converged);
      EXPECT_EQ(fit->rows_used, 12120);
      EXPECT_TRUE(IsWithin(fit->residual_deviance, wanted.deviance, 1e-11));
      size_t found = 0;
      for (const GlmCoefficient& c : fit->coefficients) {
        const auto own = wanted.coefficients.find(c.name);
        if (own == wanted.coefficients.end()) continue;
        ++found;
        const auto& [estimate, error, robust_error] = own->second;
        EXPECT_NEAR(c.estimate, estimate, 1e-8 * (std::abs(estimate) + error)) << c.name;
        EXPECT_TRUE(IsWithin(c.standard_error, robust ? robust_error : error, 1e-8)) << c.name;
      }
      EXPECT_EQ(found, wanted.coefficients.size());
      for (const GlmTerm& term : fit->terms) {
        if (term.df == 0) continue;
        const auto& [wald, of_robust] = wanted.terms.at(term.label);
        EXPECT_TRUE(IsWithin(term.chi_squared, robust ? of_robust : wald, 1e-7))
            << term.label << ": " << term.chi_squared;
      }
    }
  }
}

/// The choice is not R's where the levels come later: they are taken out first.
TEST_F(LargestFactorTest, WhatTheLevelsExplainIsAliasedWithThemWhereverItStands) {
  const auto first = Fit("y ~ C(k) + twice + x", "gaussian");
  const auto last = Fit("y ~ twice + x + C(k)", "gaussian");
  ASSERT_TRUE(first.ok() && last.ok()) << first.status() << last.status();
  EXPECT_TRUE(IsWithin(last->residual_deviance, first->residual_deviance, 1e-12));
  for (const GlmResult& fit : {*first, *last}) {
    for (const GlmCoefficient& c : fit.coefficients) {
      EXPECT_EQ(c.status == CoefficientStatus::kAliased, c.name == "twice") << c.name;
    }
    EXPECT_THAT(fit.warnings, Contains(HasSubstr("twice cannot be told from")));
  }
  EXPECT_THAT(last->warnings, Contains(HasSubstr("the levels of C(k) are taken out first")));
}

TEST_F(LargestFactorTest, PredictionsHaveTheErrorsOfTheFileThatWasWritten) {
  const auto fit = Fit("late ~ x + z + s + C(k)", "binomial");
  ASSERT_TRUE(fit.ok()) << fit.status();
  ASSERT_TRUE(WriteGlm(*fit, folder_ / "model").ok());
  const auto covariance = LoadCovariance(*fit->equation, folder_ / "model");
  ASSERT_TRUE(covariance.ok()) << covariance.status();
  EXPECT_EQ(*covariance, fit->covariance);
  std::string text;
  const auto table =
      PredictTable(*fit->equation, {path_},
                   {.type = PredictTableOptions::Type::kLink, .covariance = *covariance},
                   [&](std::string_view part) {
                     text += part;
                     return OkStatus();
                   });
  ASSERT_TRUE(table.ok()) << table.status();
  // The second row is of level 1: its error by the entries of the covariance.
  std::vector<int64_t> places;
  std::vector<double> values;
  int64_t next = 0;
  for (const GlmCoefficient& c : fit->coefficients) {
    if (c.status != CoefficientStatus::kOk) continue;
    const double value = c.name == "(Intercept)" || c.name == "C(k)1" ? 1
                         : c.name == "x"                              ? 3.7
                         : c.name == "z"                              ? 0.4
                                                                      : 0;
    places.push_back(next++);
    values.push_back(value);
  }
  double variance = 0;
  for (size_t a = 0; a < values.size(); ++a) {
    for (size_t b = 0; values[a] != 0 && b < values.size(); ++b) {
      if (values[b] != 0) variance += values[a] * values[b] * fit->covariance(places[a], places[b]);
    }
  }
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  const std::vector<std::string> fields = absl::StrSplit(lines.at(2), ',');
  EXPECT_TRUE(IsWithin(RNumber(fields.at(1)), std::sqrt(variance), 1e-9)) << lines.at(2);
}

}  // namespace
}  // namespace tenon
