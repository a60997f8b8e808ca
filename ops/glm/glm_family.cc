// SPDX-License-Identifier: Apache-2.0
#include "ops/glm/glm_family.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/base/strings.h"

namespace tenon {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

struct FamilyName {
  GlmFamily family;
  std::string_view name;
};
constexpr FamilyName kFamilies[] = {{GlmFamily::kGaussian, "gaussian"},
                                    {GlmFamily::kBinomial, "binomial"},
                                    {GlmFamily::kPoisson, "poisson"}};

struct LinkName {
  GlmLink link;
  GlmFamily family;
  std::string_view name;
};
// The first link of a family is its default.
constexpr LinkName kLinks[] = {{GlmLink::kIdentity, GlmFamily::kGaussian, "identity"},
                               {GlmLink::kLogit, GlmFamily::kBinomial, "logit"},
                               {GlmLink::kProbit, GlmFamily::kBinomial, "probit"},
                               {GlmLink::kCloglog, GlmFamily::kBinomial, "cloglog"},
                               {GlmLink::kLog, GlmFamily::kPoisson, "log"}};

using Array = Eigen::Map<Eigen::ArrayXd>;
using ConstArray = Eigen::Map<const Eigen::ArrayXd>;

/// x log x, which is 0 at 0.
double XLogX(double x) { return x > 0 ? x * std::log(x) : 0; }

double NormalDensity(double x) { return std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi); }

/// The deviance of a binomial row, of its mean and of what lacks of it to 1.
double BinomialDeviance(double y, double mean, double rest) {
  double sum = 0;
  if (y > 0) sum += y * std::log(y / mean);
  if (y < 1) sum += (1 - y) * std::log((1 - y) / rest);
  return 2 * sum;
}

double ScoreGaussian(const GlmRows& rows, double* information, double* score) {
  double deviance = 0;
  for (int64_t i = 0; i < rows.count; ++i) {
    const double rest = rows.response[i] - rows.predictor[i];
    deviance += rows.weight[i] * rest * rest;
    if (score == nullptr) continue;
    information[i] = rows.weight[i];
    score[i] = rows.weight[i] * rest;
  }
  return deviance;
}

double ScorePoisson(const GlmRows& rows, double* information, double* score) {
  double deviance = 0;
  for (int64_t i = 0; i < rows.count; ++i) {
    const double y = rows.response[i], w = rows.weight[i];
    const double mean = std::max(std::exp(rows.predictor[i]), kEpsilon);
    deviance += 2 * w * (y > 0 ? y * std::log(y / mean) - (y - mean) : mean);
    if (score == nullptr) continue;
    information[i] = w * mean;
    score[i] = w * (y - mean);
  }
  return deviance;
}

/// Rows that are computed as vectors at a time.
constexpr int64_t kRowsAtOnce = 512;
using Some = Eigen::Array<double, Eigen::Dynamic, 1, 0, kRowsAtOnce, 1>;

/// The sum of log(1 + x) over x within [0, 1], each with a weight. A logarithm takes longer than
/// all else of a row, so that rows of weight 1 share one: a product of 512 factors below 2 is a
/// double, and is exact to 512 roundings.
double SumOfLogs(const Some& x, const ConstArray& weights) {
  // A sum, as a search that may end early is no loop of vectors.
  if ((weights - 1).square().sum() == 0) return std::log((1 + x).prod());
  return (weights * x.log1p()).sum();
}

double ScoreLogit(const GlmRows& rows, double* information, double* score) {
  double linear = 0, logs = 0, saturated = 0;
  for (int64_t begin = 0; begin < rows.count; begin += kRowsAtOnce) {
    const int64_t n = std::min(kRowsAtOnce, rows.count - begin);
    const ConstArray y(rows.response + begin, n), w(rows.weight + begin, n),
        x(rows.predictor + begin, n);
    const Some e = (-x.abs()).exp();
    // The negative log-likelihood is log(1 + exp(x)) - y x.
    linear += (w * (x.max(0) - y * x)).sum();
    logs += SumOfLogs(e, w);
    if ((y * (1 - y)).sum() != 0) {
      for (int64_t i = 0; i < n; ++i) saturated += w[i] * (XLogX(y[i]) + XLogX(1 - y[i]));
    }
    if (score == nullptr) continue;
    const Some larger = (1 + e).inverse();
    const Some smaller = e * larger;
    Array(information + begin, n) = w * smaller * larger;
    Array(score + begin, n) = w * (y - (x > 0).select(larger, smaller));
  }
  return 2 * (linear + logs + saturated);
}

/// The mean, what lacks of it to 1, and its derivative.
struct Mean {
  double mean, rest, slope;
};

Mean ProbitMean(double x) {
  const double limit = 8.125890664701906;  // the quantile of 1 - epsilon
  x = std::clamp(x, -limit, limit);
  return {0.5 * std::erfc(-x * std::numbers::sqrt2 / 2),
          0.5 * std::erfc(x * std::numbers::sqrt2 / 2), std::max(NormalDensity(x), kEpsilon)};
}

Mean CloglogMean(double x) {
  const double power = std::exp(std::min(x, 700.0));
  const double rest = std::clamp(std::exp(-power), kEpsilon, 1 - kEpsilon);
  return {std::clamp(-std::expm1(-power), kEpsilon, 1 - kEpsilon), rest,
          std::max(power * std::exp(-power), kEpsilon)};
}

template <Mean (*kMeanOf)(double)>
double ScoreBinomial(const GlmRows& rows, double* information, double* score) {
  double deviance = 0;
  for (int64_t i = 0; i < rows.count; ++i) {
    const double y = rows.response[i], w = rows.weight[i];
    const Mean m = kMeanOf(rows.predictor[i]);
    deviance += w * BinomialDeviance(y, m.mean, m.rest);
    if (score == nullptr) continue;
    const double ratio = m.slope / (m.mean * m.rest);
    information[i] = w * m.slope * ratio;
    score[i] = w * ((1 - y) * -m.mean + y * m.rest) * ratio;
  }
  return deviance;
}

/// The logarithm of how many ways there are to choose k of n.
double LogChoose(double n, double k) {
  return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
}

}  // namespace

StatusOr<GlmFamily> ParseGlmFamily(std::string_view name) {
  for (const FamilyName& f : kFamilies) {
    if (f.name == name) return f.family;
  }
  return InvalidArgument("family must be gaussian, binomial or poisson, found '", name, "'");
}

StatusOr<GlmLink> ParseGlmLink(std::string_view name) {
  for (const LinkName& l : kLinks) {
    if (l.name == name) return l.link;
  }
  return InvalidArgument("link must be identity, logit, probit, cloglog or log, found '", name,
                         "'");
}

std::string_view NameOf(GlmFamily family) {
  return std::find_if(std::begin(kFamilies), std::end(kFamilies),
                      [&](const FamilyName& f) { return f.family == family; })
      ->name;
}

std::string_view NameOf(GlmLink link) {
  return std::find_if(std::begin(kLinks), std::end(kLinks),
                      [&](const LinkName& l) { return l.link == link; })
      ->name;
}

GlmLink DefaultLink(GlmFamily family) {
  return std::find_if(std::begin(kLinks), std::end(kLinks),
                      [&](const LinkName& l) { return l.family == family; })
      ->link;
}

Status CheckLink(GlmFamily family, GlmLink link) {
  std::string all;
  for (const LinkName& l : kLinks) {
    if (l.family != family) continue;
    if (l.link == link) return OkStatus();
    StrAppend(&all, all.empty() ? "" : ", ", l.name);
  }
  return InvalidArgument("the link of family ", NameOf(family), " must be one of: ", all,
                         "; found ", NameOf(link));
}

double FisherScoring(GlmFamily family, GlmLink link, const GlmRows& rows, double* information,
                     double* score) {
  switch (family) {
    case GlmFamily::kGaussian:
      return ScoreGaussian(rows, information, score);
    case GlmFamily::kPoisson:
      return ScorePoisson(rows, information, score);
    case GlmFamily::kBinomial:
      break;
  }
  if (link == GlmLink::kLogit) return ScoreLogit(rows, information, score);
  if (link == GlmLink::kProbit) return ScoreBinomial<ProbitMean>(rows, information, score);
  return ScoreBinomial<CloglogMean>(rows, information, score);
}

void MeansOf(GlmLink link, int64_t count, const double* predictor, double* mean) {
  switch (link) {
    case GlmLink::kIdentity:
      std::copy_n(predictor, count, mean);
      break;
    case GlmLink::kLog:
      // Eigen's vectors begin where memory is aligned, and round unlike the elements before them.
      for (int64_t i = 0; i < count; ++i) mean[i] = std::exp(predictor[i]);
      break;
    case GlmLink::kLogit:
      for (int64_t i = 0; i < count; ++i) {
        const double e = std::exp(-std::abs(predictor[i]));
        mean[i] = (predictor[i] > 0 ? 1 : e) / (1 + e);
      }
      break;
    case GlmLink::kProbit:
      for (int64_t i = 0; i < count; ++i) mean[i] = ProbitMean(predictor[i]).mean;
      break;
    case GlmLink::kCloglog:
      for (int64_t i = 0; i < count; ++i) mean[i] = CloglogMean(predictor[i]).mean;
      break;
  }
}

double PredictorOf(GlmLink link, double mean) {
  switch (link) {
    case GlmLink::kIdentity:
      return mean;
    case GlmLink::kLog:
      return std::log(mean);
    case GlmLink::kLogit:
      return std::log(mean) - std::log1p(-mean);
    case GlmLink::kCloglog:
      return std::log(-std::log1p(-mean));
    case GlmLink::kProbit:
      break;
  }
  // Newton's steps on a concave piece converge from its inner side, 0.
  const bool upper = mean > 0.5;
  const double tail = upper ? 1 - mean : mean;
  double x = 0;
  for (int i = 0; i < 100; ++i) {
    const Mean m = ProbitMean(x);
    const double step = (std::log(tail) - std::log(m.mean)) * m.mean / m.slope;
    x += step;
    if (std::abs(step) <= 1e-15 * std::abs(x)) break;
  }
  return upper ? -x : x;
}

double LikelihoodConstant(GlmFamily family, int64_t count, const double* response,
                          const double* weight, const double* trials) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double y = response[i], w = weight[i];
    switch (family) {
      case GlmFamily::kGaussian:
        sum += std::log(w);
        break;
      case GlmFamily::kPoisson:
        sum += w * (XLogX(y) - y - std::lgamma(y + 1));
        break;
      case GlmFamily::kBinomial: {
        const double m = trials == nullptr ? w : trials[i];
        if (m == 1 && (y == 0 || y == 1)) break;
        const double n = std::round(m), k = std::round(m * y);
        sum += w / m * LogChoose(n, k) + w * (XLogX(y) + XLogX(1 - y));
        break;
      }
    }
  }
  return sum;
}

ResponseRange ResponsesOf(GlmFamily family) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  if (family == GlmFamily::kBinomial) return {0, 1};
  return {family == GlmFamily::kPoisson ? 0 : -kLargest, kLargest};
}

}  // namespace tenon
