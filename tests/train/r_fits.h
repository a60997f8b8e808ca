// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "tests/train/r_rows.h"
#include "train/glm/result/glm_result.h"

namespace tenon {

/// A model that R fitted, with all that R says of it, from tests/data/glm/fits.tsv.
inline GlmResult RFit(const std::string& name) {
  GlmResult fit;
  bool is_it = false;
  std::vector<std::vector<double>> covariance;
  for (const std::vector<std::string>& row : ReadRRows("fits.tsv")) {
    if (row[0] == "model") {
      is_it = row[1] == name;
      if (!is_it) continue;
      fit.family = row[2];
      fit.link = row[3];
      fit.dispersion_is_estimated = fit.family == "gaussian";
      fit.rows_used = static_cast<int64_t>(RNumber(row[4]));
      fit.dispersion = RNumber(row[5]);
      fit.residual_df = static_cast<int64_t>(RNumber(row[6]));
      fit.null_df = static_cast<int64_t>(RNumber(row[7]));
      fit.null_deviance = RNumber(row[8]);
      fit.residual_deviance = RNumber(row[9]);
      fit.aic = RNumber(row[10]);
      fit.bic = RNumber(row[11]);
      fit.log_likelihood = RNumber(row[12]);
      fit.converged = true;
      fit.method = "newton";
    }
    if (!is_it) continue;
    if (row[0] == "summary") {
      fit.r2 = RNumber(row[1]);
      fit.adjusted_r2 = RNumber(row[2]);
      fit.sigma = RNumber(row[3]);
      fit.f_statistic = RNumber(row[4]);
      fit.f_df1 = static_cast<int64_t>(RNumber(row[5]));
      fit.f_df2 = static_cast<int64_t>(RNumber(row[6]));
      fit.f_log10_p = RNumber(row[7]) / std::log(10.0);
      fit.f_p_value = std::exp(RNumber(row[7]));
    } else if (row[0] == "coef") {
      GlmCoefficient c = {.term = row[1], .level = row[2], .name = row[3]};
      c.estimate = RNumber(row[4]);
      if (std::isnan(c.estimate)) c.status = CoefficientStatus::kAliased;
      c.standard_error = RNumber(row[5]);
      c.statistic = RNumber(row[6]);
      c.log10_p = RNumber(row[7]) / std::log(10.0);
      c.p_value = std::exp(RNumber(row[7]));
      c.lower = RNumber(row[8]);
      c.upper = RNumber(row[9]);
      fit.coefficients.push_back(c);
    } else if (row[0] == "cov") {
      std::vector<double> values;
      for (size_t i = 1; i < row.size(); ++i) values.push_back(RNumber(row[i]));
      covariance.push_back(values);
    } else if (row[0] == "term") {
      const double log10_p = RNumber(row[4]) / std::log(10.0);
      fit.terms.push_back({row[1], static_cast<int64_t>(RNumber(row[2])), RNumber(row[3]),
                           std::exp(RNumber(row[4])), log10_p});
    }
  }
  EXPECT_FALSE(covariance.empty()) << name;
  GlmCovariance::Blocks blocks;
  for (const std::vector<double>& row : covariance) {
    blocks.others.insert(blocks.others.end(), row.begin(), row.end());
  }
  fit.covariance = GlmCovariance(std::move(blocks));
  return fit;
}

}  // namespace tenon
