// SPDX-License-Identifier: Apache-2.0
#include "train/glm/inference/describe_stream.h"

#include <cmath>
#include <string>

#include "absl/strings/str_format.h"
#include "core/base/strings.h"
#include "train/glm/inference/describe_penalty.h"

namespace tenon {
namespace {

std::string ObjectiveOfStream(const FittedGlm& fitted) {
  const GlmPenalty& penalty = fitted.penalty;
  std::string text = "deviance / 2";
  if (penalty.ridge > 0) {
    StrAppend(&text, absl::StrFormat(" + %.6g / 2 x sum of b²", penalty.ridge));
  }
  if (penalty.lambda > 0) {
    StrAppend(&text, absl::StrFormat(" + %.15g x %.6g x (", fitted.totals.weight, penalty.lambda));
    if (penalty.alpha < 1) {
      StrAppend(&text, absl::StrFormat("%.6g / 2 x sum of b²", 1 - penalty.alpha));
      if (fitted.family == GlmFamily::kGaussian) {
        StrAppend(&text, " / the standard deviation of the response");
      }
      if (penalty.alpha > 0) StrAppend(&text, " + ");
    }
    if (penalty.alpha > 0) StrAppend(&text, absl::StrFormat("%.6g x sum of |b|", penalty.alpha));
    StrAppend(&text, ")");
  }
  if (!penalty.is_none()) {
    StrAppend(&text,
              "; b: coefficients of numbers for one standard deviation (1/n), those of "
              "levels as they are");
    if (fitted.formula.has_intercept) StrAppend(&text, "; the intercept is free");
  }
  return text;
}

}  // namespace

Status CheckStream(const StreamFitOptions& stream, const GlmPenalty& penalty) {
  if (penalty.path > 0) {
    return InvalidArgument("a stream has one penalty, and no path of them");
  }
  if (!penalty.is_none() && penalty.standardised != StandardisedColumns::kNumeric) {
    return InvalidArgument(
        "the penalty of a stream counts coefficients of numbers for one standard deviation and "
        "those of levels as they are: --standardize numeric");
  }
  if (stream.epochs < 1 || stream.batch_rows < 1 || !(stream.learning_rate > 0) ||
      !std::isfinite(stream.learning_rate)) {
    return InvalidArgument(
        "a stream has one epoch or more, batches of one row or more, and a "
        "learning rate above 0; found ",
        stream.epochs, ", ", stream.batch_rows, ", ", stream.learning_rate);
  }
  return OkStatus();
}

void DescribeStream(const FittedGlm& fitted, GlmResult* result) {
  const StreamFit& fit = *fitted.stream;
  result->method = "ftrl";
  result->stream = {fit.epochs,    fit.batch_rows,  fit.seed,   fit.learning_rate,
                    fit.rows_read, fit.rows_missed, fit.seconds};
  NamePenalty(fitted.penalty, fitted.penalty.lambda, result);
  result->objective = ObjectiveOfStream(fitted);
  result->aic = result->bic = kNotGiven;
  result->residual_df = 0;
  if (result->dispersion_is_estimated) {
    result->dispersion = result->residual_deviance / static_cast<double>(result->rows_used);
  }
  result->warnings.insert(result->warnings.end(), fit.warnings.begin(), fit.warnings.end());
  WarnOfSeparated(fitted, "its estimate is as large as the steps of the stream have left it",
                  result);
}

}  // namespace tenon
