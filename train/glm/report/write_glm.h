// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "data/files/file.h"
#include "train/glm/result/glm_result.h"

// The files of a fitted model, for other programs and for people.

namespace tenon {

/// A line a coefficient, reference levels and those without an estimate included: term, level,
/// reference (the level that this one is compared with), estimate, std_error, statistic, p_value,
/// conf_low, conf_high, standardised, rows, status, log10_p, name (R's), sum_of. As RFC 4180 has
/// it, but with lines that end as Unix's do; doubles have the shortest text that is read as the
/// same again, and are empty where there is none.
std::string CoefficientsCsv(const GlmResult& result);
/// A line a term: term, df, chi_squared, p_value, log10_p.
std::string TermsCsv(const GlmResult& result);
/// A line a pass: pass, deviance, gradient_norm.
std::string IterationsCsv(const GlmResult& result);
/// A line a fit of a path of penalties: lambda, df (coefficients that are not 0, without the
/// intercept), deviance_ratio, residual, and each coefficient by its name in R. Empty without a
/// path.
std::string CoefficientsPathCsv(const GlmResult& result);
/// How the model was fitted, and how well it fits and predicts, as an object of JSON.
std::string MetricsJson(const GlmResult& result);

/// Writes model.json (model_file.h), coefficients.csv, terms.csv, iterations.csv, metrics.json,
/// covariance.npz (the arrays `covariance`, `estimates` and `names`), roc.svg, calibration.svg,
/// coefficients.svg, coefficients_path.csv, path.svg and saved_model/ (glm_saved_model.h) into the
/// folder, which is made if it is not there; those of which the result has nothing are left out,
/// and removed if they are there from a fit before. Gives the names of the written files. Errors
/// name the file.
StatusOr<std::vector<std::string>> WriteGlm(const GlmResult& result, const std::string& folder,
                                            const FileContext& context = {});

}  // namespace tenon
