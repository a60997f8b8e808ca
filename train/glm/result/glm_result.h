// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "train/glm/result/binary_metrics.h"
#include "train/glm/result/glm_covariance.h"
#include "train/glm/result/glm_equation.h"

// A fitted generalised linear model as its user has it: numbers and names, without the data.

namespace tenon {

/// The value of a number that a result does not have, such as the standard error under a penalty.
inline constexpr double kNotGiven = std::numeric_limits<double>::quiet_NaN();

/// Why a coefficient has the value that it has.
enum class CoefficientStatus {
  kOk,
  kReference,  // the level of a factor that the others are compared with: 0 by definition
  kAliased,    // a sum of columns before it: NA in R
  kSeparated,  // the labels of its rows are all alike: no finite estimate, rows left out
  kZero,       // a penalty made it 0
};

/// "ok", "reference", "aliased", "separated" or "zero", as coefficients.csv has it.
std::string_view ToString(CoefficientStatus status);

/// A line of the table of coefficients, which a reference level has as well.
struct GlmCoefficient {
  std::string term;        // the label of the formula's term; "(Intercept)"
  std::string level = {};  // the levels of the term's factors, joined by ":"; empty without factors
  std::string name = {};   // as R names it: "carrierUA:distance"
  CoefficientStatus status = CoefficientStatus::kOk;
  double estimate = 0;  // in the units of the data
  double standard_error = kNotGiven;
  double statistic = kNotGiven;                 // z, or t where the dispersion is estimated
  double p_value = kNotGiven;                   // of two sides
  double log10_p = kNotGiven;                   // exact where p_value is too small for a double
  double lower = kNotGiven, upper = kNotGiven;  // the confidence interval
  /// The change of the linear predictor with one standard deviation of the column.
  double standardised = kNotGiven;
  int64_t rows = -1;        // with this level; -1 where there is no factor
  std::string sum_of = {};  // what an aliased one is: "1.609344 x distance"; empty when unknown

  bool is_intercept() const { return term == "(Intercept)"; }
};

/// The joint test that all coefficients of a term are zero.
struct GlmTerm {
  std::string label;
  int64_t df = 0;                  // coefficients that are estimated
  double chi_squared = kNotGiven;  // Wald's
  double p_value = kNotGiven, log10_p = kNotGiven;
};

/// A pass over the data.
struct GlmIteration {
  int64_t pass = 0;
  double deviance = 0;
  double gradient_norm = 0;
  double seconds = 0;  // since the fit began
};

/// A fit of a path of penalties.
struct GlmPathPoint {
  double lambda = 0;
  int64_t nonzero = 0;        // coefficients that are not 0, without the intercept
  double deviance_ratio = 0;  // the part of the null deviance that is explained
  double residual = kNotGiven;
  /// By coefficient with status kOk or kZero: in the units of the data, and as the penalty counts
  /// them.
  std::vector<double> coefficients, standardised;
};

/// The account of a stream of rows, which stands in place of an exact fit.
struct GlmStreamReport {
  int64_t epochs = 0, batch_rows = 0, seed = 0;
  double learning_rate = 0;
  int64_t rows_read = 0, rows_missed = 0;  // in all epochs
  double seconds = 0;                      // of the epochs
};

/// How well a model tells the labels of rows, those of the fit or others.
struct GlmMetrics {
  std::string data;  // "training" or "evaluation"
  int64_t rows = 0;
  int64_t rows_without_prediction = 0;  // with values missing or levels that are unknown
  double log_loss = kNotGiven;          // of a binary response, as all down to the calibration
  double auc = kNotGiven;
  double accuracy = kNotGiven, precision = kNotGiven, recall = kNotGiven;  // at probability 1/2
  double brier = kNotGiven;
  /// The logistic regression of the labels on the logit of the prediction: 0 and 1 are perfect.
  double calibration_intercept = kNotGiven, calibration_slope = kNotGiven;
  double rmse = kNotGiven, mae = kNotGiven;  // of a response that is a number
  std::optional<LogitHistogram> histogram;   // of a binary response: for ROC and calibration
};

/// A fitted model. Numbers that it does not have are NaN. A value, which is copied and kept as
/// such.
struct GlmResult {
  struct File {
    std::string path;
    int64_t size = 0;  // bytes
  };

  std::string formula;
  std::string response;                                // the label of its left side
  std::string family = "gaussian", link = "identity";  // as R names them

  std::vector<File> files;
  int64_t rows_used = 0;
  int64_t rows_missing = 0;  // dropped, because a value that the formula needs is missing
  std::vector<std::pair<std::string, int64_t>> missing_by_column;
  int64_t rows_separated = 0;  // left out with levels that have no finite coefficient

  std::vector<GlmCoefficient> coefficients;  // in the formula's order, reference levels included
  std::vector<GlmTerm> terms;                // without the intercept
  /// The covariance of the estimates whose status is kOk, in their order; empty without inference.
  GlmCovariance covariance;
  double level = 0.95;  // of the confidence intervals

  double null_deviance = kNotGiven, residual_deviance = kNotGiven;
  int64_t null_df = 0, residual_df = 0;
  double dispersion = 1;
  bool dispersion_is_estimated = false;  // gaussian: t and F in place of z and chi squared
  double aic = kNotGiven, bic = kNotGiven, log_likelihood = kNotGiven;
  double mcfadden_r2 = kNotGiven;
  double r2 = kNotGiven, adjusted_r2 = kNotGiven, sigma = kNotGiven;  // gaussian's
  double f_statistic = kNotGiven, f_p_value = kNotGiven, f_log10_p = kNotGiven;
  int64_t f_df1 = 0, f_df2 = 0;

  std::string method;  // "newton", with a penalty also "newton and coordinate descent"; "lbfgs"
  std::string method_reason;  // why the method is not newton, where it chose itself
  /// Bytes of the sums that newton wants, which gives standard errors, where there are none since
  /// the method had gradients alone.
  std::optional<int64_t> newton_bytes;
  bool converged = false;
  std::optional<GlmStreamReport> stream;  // of method "ftrl", which does not converge
  std::vector<GlmIteration> iterations;
  double seconds = 0;
  int64_t bytes_of_sums = 0;

  double ridge = 0;              // the factor of the sum of squares
  double lasso = 0;              // lambda of a lasso, as glmnet counts it
  double alpha = 0, lambda = 0;  // of an elastic net, as glmnet counts them
  std::string objective;         // what was made least, in words
  /// How far a penalised fit is from the minimum: the largest entry of the least subgradient of the
  /// objective by standardised coefficients, a row (and, for a gaussian model, a deviation of the
  /// response).
  double penalty_residual = kNotGiven;
  std::vector<GlmPathPoint> path;  // from the largest lambda down
  bool robust = false;             // standard errors are White's (HC1)

  std::vector<std::string> warnings;    // lines
  std::vector<GlmMetrics> metrics;      // of training, and of evaluation if there is any
  std::optional<GlmEquation> equation;  // what predicts

  /// Estimates under a penalty are biased on purpose, and have no standard errors.
  bool is_penalised() const {
    return ridge > 0 || lasso > 0 || lambda > 0 || !std::isnan(penalty_residual);
  }
  /// Whether there are standard errors and what follows from them.
  bool has_inference() const { return !is_penalised() && !newton_bytes && !stream; }
  /// The number of coefficients that are estimated: those of the covariance.
  int64_t NumEstimated() const;
};

}  // namespace tenon
