// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/status.h"

namespace tenon {

/// A distribution of responses.
enum class GlmFamily : uint8_t { kGaussian, kBinomial, kPoisson };

/// A function that makes of a mean what is linear in the columns.
enum class GlmLink : uint8_t { kIdentity, kLogit, kProbit, kCloglog, kLog };

/// "gaussian" and so on; InvalidArgument, listing them, for others.
StatusOr<GlmFamily> ParseGlmFamily(std::string_view name);
StatusOr<GlmLink> ParseGlmLink(std::string_view name);
std::string_view NameOf(GlmFamily family);
std::string_view NameOf(GlmLink link);
/// The canonical one, which is R's default.
GlmLink DefaultLink(GlmFamily family);
/// InvalidArgument, listing the family's links, where a family does not go with a link. A family
/// has identity (gaussian), logit, probit and cloglog (binomial), or log (poisson).
Status CheckLink(GlmFamily family, GlmLink link);

/// The responses of rows, and what is predicted for them. A binomial response is the share of
/// successes, and its weight counts the trials.
struct GlmRows {
  int64_t count = 0;
  const double* response = nullptr;
  const double* weight = nullptr;
  const double* predictor = nullptr;  // the linear one, with its offset
};

/// Writes each row's Fisher information about the predictor, `weight * mean'^2 / variance`, and its
/// score, the derivative of the log-likelihood where the dispersion is 1; both arrays may be null
/// together. The result is the deviance of all rows: twice what a perfect fit has more of
/// log-likelihood, as R's glm() has it.
double FisherScoring(GlmFamily family, GlmLink link, const GlmRows& rows, double* information,
                     double* score);

/// The means of rows. `mean` may be `predictor`.
void MeansOf(GlmLink link, int64_t count, const double* predictor, double* mean);
/// The predictor of a mean.
double PredictorOf(GlmLink link, double mean);

/// The part of R's AIC that follows from the responses alone: the log-likelihood of a perfect fit
/// (binomial, poisson), or the sum of the weights' logarithms (gaussian). `trials` are those of
/// each row; null where a response is a success or none, and the weights count as trials then.
double LikelihoodConstant(GlmFamily family, int64_t count, const double* response,
                          const double* weight, const double* trials);

/// The responses that a family can have: from 0 to 1 for binomial, finite ones, not negative for
/// poisson.
struct ResponseRange {
  double lowest, highest;
};
ResponseRange ResponsesOf(GlmFamily family);

}  // namespace tenon
