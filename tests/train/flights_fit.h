// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "tests/train/r_rows.h"
#include "train/glm/inference/distributions.h"
#include "train/glm/result/glm_result.h"

namespace tenon {

/// R's model of the flights, of tests/data/glm/flights.tsv, as a result.
inline GlmResult FlightsFit() {
  GlmResult fit;
  fit.formula =
      "late ~ C(month) + C(dow) + hour + carrier + origin + dest + distance + temp + humid + "
      "wind_speed + precip + pressure + visib";
  fit.response = "late";
  fit.family = "binomial";
  fit.link = "logit";
  fit.files = {{"flights_train.csv", 16'200'000}};
  fit.rows_separated = 1;
  fit.method = "newton";
  fit.converged = true;
  fit.seconds = 0.2;
  fit.bytes_of_sums = 85'000;
  fit.iterations = {{1, 261000, 1e4}, {6, 256337.4, 3e-9}};
  fit.objective = "the deviance";
  fit.warnings = {
      "dest = LEX has 1 row, and its late is 0: no finite coefficient; level and row "
      "left out (--separated keep|error)",
      "distance is nearly determined by the other terms: variance inflation 32,600"};
  for (const std::vector<std::string>& row : ReadRRows("flights.tsv")) {
    if (row[0] == "model") {
      fit.rows_used = static_cast<int64_t>(RNumber(row[1]));
      fit.null_df = static_cast<int64_t>(RNumber(row[2]));
      fit.residual_df = static_cast<int64_t>(RNumber(row[3]));
      fit.null_deviance = RNumber(row[4]);
      fit.residual_deviance = RNumber(row[5]);
      fit.mcfadden_r2 = 1 - fit.residual_deviance / fit.null_deviance;
      fit.aic = RNumber(row[6]);
      fit.bic = RNumber(row[7]);
      fit.log_likelihood = RNumber(row[8]);
    } else if (row[0] == "coef") {
      GlmCoefficient c = {.term = row[1], .level = row[2], .name = row[3]};
      c.rows = static_cast<int64_t>(RNumber(row[7]));
      if (row[4] == "NA") {
        c.status = CoefficientStatus::kReference;
      } else {
        c.estimate = RNumber(row[4]);
        c.standard_error = RNumber(row[5]);
        c.standardised = RNumber(row[6]);
        c.statistic = c.estimate / c.standard_error;
        const TailProbability tail = NormalTwoSided(c.statistic);
        c.p_value = tail.p;
        c.log10_p = tail.log10;
        c.lower = c.estimate - NormalQuantile(0.975) * c.standard_error;
        c.upper = c.estimate + NormalQuantile(0.975) * c.standard_error;
      }
      fit.coefficients.push_back(c);
    } else if (row[0] == "term") {
      const double df = RNumber(row[2]), chi_squared = RNumber(row[3]);
      const TailProbability tail = ChiSquaredAbove(chi_squared, df);
      fit.terms.push_back({row[1], static_cast<int64_t>(df), chi_squared, tail.p, tail.log10});
    }
  }
  GlmMetrics training;
  training.data = "training";
  training.rows = fit.rows_used;
  training.log_loss = 0.48943;
  training.auc = 0.7203;
  training.accuracy = 0.7780;
  training.precision = 0.619;
  training.recall = 0.168;
  training.brier = 0.1586;
  training.calibration_intercept = -1e-9;
  training.calibration_slope = 1;
  GlmMetrics evaluation = training;
  evaluation.data = "evaluation";
  evaluation.rows = 65'470;
  evaluation.log_loss = 0.48785;
  evaluation.auc = 0.7222;
  evaluation.calibration_intercept = 0.010;
  evaluation.calibration_slope = 1.014;
  fit.metrics = {training, evaluation};
  return fit;
}

}  // namespace tenon
