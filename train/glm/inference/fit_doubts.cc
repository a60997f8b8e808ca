// SPDX-License-Identifier: Apache-2.0
#include "train/glm/inference/fit_doubts.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/strings.h"
#include "train/glm/text/number_text.h"

namespace tenon {
namespace {

constexpr double kMostInflation = 1000;
/// Rounding is 1e-9 of the square of a column: of what is left below this, digits are noise.
constexpr double kLeastLeft = 1e-7;
constexpr size_t kNamedDoubts = 5;

std::string NameOf(const FittedGlm& fitted, int64_t column) {
  return NameOfColumn(fitted.formula, fitted.model->variables(), fitted.model->columns()[column]);
}

bool HasFactor(const FittedGlm& fitted, const FormulaTerm& term) {
  return std::any_of(term.variables.begin(), term.variables.end(), [&](int64_t variable) {
    return fitted.model->variables()[variable].is_factor;
  });
}

/// Whether the inflation of a column says something: that of levels, and of slopes that differ
/// between levels, is large by itself where few rows have the reference.
bool HasOwnInflation(const FittedGlm& fitted, const DesignColumn& column) {
  if (column.term < 0) return false;
  const FormulaTerm& own = fitted.formula.terms[column.term];
  if (HasFactor(fitted, own)) return false;
  return std::none_of(
      fitted.formula.terms.begin(), fitted.formula.terms.end(), [&](const FormulaTerm& other) {
        return HasFactor(fitted, other) &&
               std::any_of(other.variables.begin(), other.variables.end(), [&](int64_t variable) {
                 return std::find(own.variables.begin(), own.variables.end(), variable) !=
                        own.variables.end();
               });
      });
}

/// "1.23e+05" is said as 123,000.
std::string InflationText(double inflation) {
  if (!(inflation < 1e15)) return absl::StrFormat("%.0e", inflation);
  const double unit = std::pow(10, std::floor(std::log10(inflation)) - 2);
  return CountText(std::llround(std::round(inflation / unit) * unit));
}

void AddInflations(const FittedGlm& fitted, std::vector<std::string>* doubts) {
  const Eigen::VectorXd& inflation = fitted.fit.variance_inflation;
  std::vector<int64_t> large;
  for (int64_t j = 0; j < inflation.size(); ++j) {
    if (inflation[j] > kMostInflation && HasOwnInflation(fitted, fitted.model->columns()[j])) {
      large.push_back(j);
    }
  }
  std::sort(large.begin(), large.end(), [&](int64_t a, int64_t b) {
    return inflation[a] != inflation[b] ? inflation[a] > inflation[b] : a < b;
  });
  const size_t num_named = std::min(large.size(), kNamedDoubts);
  std::string doubt;
  for (size_t i = 0; i < num_named; ++i) {
    const std::string inflated = InflationText(inflation[large[i]]);
    if (i == 0) {
      doubt = StrCat(NameOf(fitted, large[i]),
                     " is nearly determined by the other terms: variance inflation ", inflated);
    } else {
      StrAppend(&doubt, i == 1 ? "; so are " : ", ", NameOf(fitted, large[i]), " (", inflated, ")");
    }
  }
  if (large.size() > num_named) StrAppend(&doubt, " and ", large.size() - num_named, " more");
  if (!doubt.empty()) doubts->push_back(std::move(doubt));
  const int64_t least = fitted.fit.least_left_column;
  if (least < 0 || fitted.fit.least_left >= kLeastLeft) return;
  const auto end = large.begin() + static_cast<int64_t>(num_named);
  if (std::find(large.begin(), end, least) != end) return;
  doubts->push_back(absl::StrFormat(
      "%s is nearly a sum of the columns before it, which leave %.0e of its square: the last "
      "digits of its estimate are rounding",
      NameOf(fitted, least), fitted.fit.least_left));
}

void AddGrowing(const FittedGlm& fitted, std::vector<std::string>* doubts) {
  std::vector<std::string> names;
  size_t count = 0;
  for (const int64_t j : fitted.fit.growing) {
    const DesignColumn& column = fitted.model->columns()[j];
    const std::string name = NameOf(fitted, j);
    // Levels that are kept have a warning of their own.
    const bool is_known = std::any_of(
        fitted.separated.begin(), fitted.separated.end(), [&](const SeparatedLevel& level) {
          return level.is_kept &&
                 name == StrCat(fitted.formula.variables[level.variable].label, level.level);
        });
    if (is_known || column.term < 0) continue;
    if (++count <= kNamedDoubts) names.push_back(name);
  }
  if (names.empty()) return;
  const std::string more =
      count > names.size() ? StrCat(" and ", count - names.size(), " more") : "";
  doubts->push_back(StrCat(
      Join(names, ", "), more,
      count == 1 ? " separates the responses: its estimate would grow without end, and its tests "
                   "mean nothing"
                 : " together separate the responses: their estimates would grow without end, and "
                   "their tests mean nothing",
      "; --ridge has finite ones"));
}

}  // namespace

std::vector<std::string> DoubtsOf(const FittedGlm& fitted) {
  std::vector<std::string> doubts;
  AddGrowing(fitted, &doubts);
  // Coefficients that grow have let the weights of most rows vanish, and with them what tells
  // columns apart.
  if (doubts.empty()) AddInflations(fitted, &doubts);
  return doubts;
}

}  // namespace tenon
