// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "core/base/strings.h"
#include "tests/data/sample_files.h"
#include "train/glm/fit_glm.h"
#include "train/glm/model/glm_model.h"
#include "train/glm/rows/table_tasks.h"
#include "train/glm/solvers/fisher_scoring.h"

namespace tenon {
namespace {

/// A model that R's glm() fitted, as tests/data/glm/make_models.R writes it.
struct ModelInR {
  std::string formula, family, link, weights;
  std::map<std::string, double> estimates, errors, others;
};

std::vector<ModelInR> ReadModelsOfR() {
  std::ifstream file(SamplePath("glm/models.tsv"));
  std::vector<ModelInR> fits;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    const std::vector<std::string> parts = absl::StrSplit(line, '\t');
    ModelInR key = {parts[0], parts[1], parts[2], parts[3], {}, {}, {}};
    if (fits.empty() || fits.back().formula != key.formula || fits.back().link != key.link ||
        fits.back().weights != key.weights || fits.back().family != key.family) {
      fits.push_back(key);
    }
    const double value = parts[6] == "NA" ? NAN : std::stod(parts[6]);
    ModelInR& fit = fits.back();
    if (parts[4] == "estimate") {
      fit.estimates[parts[5]] = value;
    } else if (parts[4] == "error") {
      fit.errors[parts[5]] = value;
    } else {
      fit.others[StrCat(parts[4], " ", parts[5])] = value;
    }
  }
  return fits;
}

class GlmFitTest : public ::testing::TestWithParam<int64_t> {};

TEST_P(GlmFitTest, EstimatesAndStandardErrorsAreRs) {
  const std::vector<ModelInR> fits = ReadModelsOfR();
  ASSERT_GT(fits.size(), 25);
  for (const ModelInR& wanted : fits) {
    SCOPED_TRACE(StrCat(wanted.formula, " ", wanted.family, " ", wanted.link, " ", wanted.weights));
    const auto files = FindTableFiles({SamplePath("glm/models.csv")}).value();
    TableSchema schema;
    schema.header = ReadTableHeader(files, schema.format).value();
    const auto formula = ParseFormula(wanted.formula, schema.header.names);
    ASSERT_TRUE(formula.ok()) << formula.status();
    const auto columns = FormulaColumns::Of(*formula, wanted.weights, schema.header).value();
    schema.columns = columns.columns();
    auto tasks = TableTasks::Open(files, schema, {.unit_bytes = GetParam()});
    ASSERT_TRUE(tasks.ok()) << tasks.status();
    const auto settled = (*tasks)->Read();
    ASSERT_TRUE(settled.ok()) << settled.status();
    ColumnKinds kinds;
    for (size_t c = 0; c < schema.columns.size(); ++c) {
      const auto column = static_cast<int64_t>(c);
      kinds.is_text.push_back((*tasks)->IsText(column));
      if (kinds.is_text.back()) kinds.levels[column] = (*tasks)->Levels(column).value();
    }
    auto model =
        GlmModel::Create(*formula, columns, kinds, wanted.weights,
                         ParseGlmFamily(wanted.family).value(), ParseGlmLink(wanted.link).value());
    ASSERT_TRUE(model.ok()) << model.status();
    const GlmSumsFunction pass = [&](const GlmSumsLayout& layout,
                                     absl::Span<const double> coefficients) {
      return (*tasks)->Sums(layout, coefficients);
    };
    const GlmSumsLayout margins(model->margins(), GlmPass::kRows);
    const auto rows = pass(margins, std::vector<double>(model->margins().num_columns())).value();
    const GlmTotals totals = TotalsOf(rows);
    model->Settle(GlmSums(margins, rows), totals.num_rows, ColumnUnits::kPowersOfTwo);
    const double mean = totals.weighted_response / totals.weight;
    Eigen::VectorXd start = Eigen::VectorXd::Zero(static_cast<int64_t>(model->columns().size()));
    if (formula->has_intercept) start[0] = PredictorOf(model->design().link, mean);
    const auto fit = FitByFisherScoring(*model, start, pass);
    ASSERT_TRUE(fit.ok()) << fit.status();
    EXPECT_TRUE(fit->converged);
    EXPECT_LT(fit->passes, 15);
    const double df = totals.num_rows - static_cast<double>(model->columns().size()) +
                      static_cast<double>(fit->aliased.size());
    EXPECT_EQ(df, wanted.others.at("df residual"));
    EXPECT_NEAR(fit->deviance / wanted.others.at("deviance residual"), 1, 1e-11);
    const double dispersion = wanted.family == "gaussian" ? fit->deviance / df : 1;
    const Eigen::VectorXd estimates = model->ToUnits(fit->coefficients);
    const Eigen::VectorXd variances =
        model->CovarianceToUnits(fit->inverse).Diagonal() * dispersion;
    ASSERT_EQ(model->columns().size(), wanted.estimates.size());
    for (size_t j = 0; j < model->columns().size(); ++j) {
      const auto index = static_cast<int64_t>(j);
      const std::string name = NameOfColumn(*formula, model->variables(), model->columns()[j]);
      ASSERT_TRUE(wanted.estimates.contains(name)) << name;
      const double estimate = wanted.estimates.at(name);
      const bool is_aliased =
          std::find(fit->aliased.begin(), fit->aliased.end(), index) != fit->aliased.end();
      EXPECT_EQ(is_aliased, std::isnan(estimate)) << name;
      if (is_aliased) continue;
      const double error = wanted.errors.at(name);
      EXPECT_NEAR(estimates[index], estimate, 1e-8 * (std::abs(estimate) + error)) << name;
      EXPECT_NEAR(std::sqrt(variances[index]) / error, 1, 1e-8) << name;
    }
  }
}

/// A design with a row for each level has one score in each entry of the gradient.
TEST(GlmPassTest, GradientsAndSquaresAreOfTheSameScores) {
  std::string text = "id,x,y\n";
  for (int i = 0; i < 40; ++i) StrAppend(&text, "r", i, ",", i % 7, ",", i % 3 == 0, "\n");
  const TemporaryFolder folder;
  const auto files = FindTableFiles({folder.Write("t.csv", text)}).value();
  TableSchema schema;
  schema.header = ReadTableHeader(files, schema.format).value();
  const Formula formula = ParseFormula("y ~ id + x", schema.header.names).value();
  const auto columns = FormulaColumns::Of(formula, "", schema.header).value();
  schema.columns = columns.columns();
  auto tasks = TableTasks::Open(files, schema, {.unit_bytes = 100}).value();
  ASSERT_TRUE(tasks->Read().ok());
  ColumnKinds kinds;
  for (int64_t c = 0; c < 3; ++c) {
    kinds.is_text.push_back(tasks->IsText(c));
    if (tasks->IsText(c)) kinds.levels[c] = tasks->Levels(c).value();
  }
  auto model = GlmModel::Create(formula, columns, kinds, "", GlmFamily::kBinomial, GlmLink::kLogit);
  ASSERT_TRUE(model.ok()) << model.status();
  const GlmSumsLayout margins(model->margins(), GlmPass::kRows);
  const auto rows = tasks->Sums(margins, std::vector<double>(margins.design().num_columns()));
  model->Settle(GlmSums(margins, *rows), 40, ColumnUnits::kPowersOfTwo);
  const GlmDesign& design = model->design();
  std::vector<double> coefficients(design.num_columns());
  for (size_t j = 0; j < coefficients.size(); ++j)
    coefficients[j] = 0.1 * static_cast<double>(j % 5);
  const GlmSumsLayout newton(design, GlmPass::kNewton), gradient(design, GlmPass::kGradient),
      squares(design, GlmPass::kSquares);
  const auto in_newton = tasks->Sums(newton, coefficients).value();
  const auto in_gradient = tasks->Sums(gradient, coefficients).value();
  const auto in_squares = tasks->Sums(squares, coefficients).value();
  EXPECT_EQ(TotalsOf(in_newton).deviance, TotalsOf(in_gradient).deviance);
  for (const GlmSums::Column& column : model->places()) {
    const double score = GlmSums(newton, in_newton).Gradient(column);
    EXPECT_NEAR(GlmSums(gradient, in_gradient).Gradient(column), score, 1e-13);
    if (!squares.is_coded(column.group)) continue;
    EXPECT_NE(score, 0);
    EXPECT_NEAR(GlmSums(squares, in_squares).Product(column, column), score * score, 1e-13);
  }
}

/// Shares of many trials that differ much from row to row: a whole step from the mean ends where
/// the information has gone. The deviance and the slope are R's.
TEST(GlmConvergenceTest, StepsThatPromiseTooMuchAreHalved) {
  const auto fit =
      FitGlm("cbind(hour, flight) ~ carrier + temp", {"share/flights/flights_sample.csv.gz"},
             {.family = GlmFamily::kBinomial});
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_TRUE(fit->converged);
  EXPECT_NEAR(fit->residual_deviance / 418541.699114147, 1, 1e-12);
  EXPECT_EQ(fit->coefficients.back().name, "temp");
  EXPECT_NEAR(fit->coefficients.back().estimate / 0.000664359798202709, 1, 1e-9);
  EXPECT_LT(fit->iterations.size(), 15);
}

INSTANTIATE_TEST_SUITE_P(UnitBytes, GlmFitTest, ::testing::Values(1 << 20, 3000));

}  // namespace
}  // namespace tenon
