// SPDX-License-Identifier: Apache-2.0
#include "train/glm/solvers/fit_method.h"

#include <algorithm>

#include "core/base/parallel.h"
#include "core/base/strings.h"
#include "train/glm/model/glm_model.h"
#include "train/glm/text/number_text.h"

namespace tenon {
namespace {

/// Half the products of so many columns take 100 MB, and their factorisation some seconds.
constexpr int64_t kMostColumns = 5000;
/// The bytes that AddGlmSums lets the sums of all threads take.
constexpr double kMostBytes = static_cast<double>(int64_t{4} << 30);

}  // namespace

StatusOr<ChosenMethod> ChooseMethod(const GlmModel& model, const GlmPenalty& penalty,
                                    GlmMethod wanted) {
  const auto columns = static_cast<int64_t>(model.columns().size());
  const bool is_lasso = (penalty.lambda > 0 || penalty.path > 0) && penalty.alpha > 0;
  const int64_t others = columns - (is_lasso ? 0 : LargestFactor(model.columns()).count);
  ChosenMethod chosen;
  chosen.method = wanted;
  // As a double: that of a million columns may be more than a number of 64 bits has.
  const double sums =
      static_cast<double>(GlmSumsLayout(model.design(), GlmPass::kNewton).size()) * sizeof(double);
  chosen.newton_bytes = static_cast<int64_t>(std::min(sums, 9e18));
  const bool is_wide = others > kMostColumns;
  const bool fits = sums * ThreadBudget() <= kMostBytes;
  if (wanted == GlmMethod::kAuto) {
    chosen.method = is_wide || !fits ? GlmMethod::kLbfgs : GlmMethod::kNewton;
    if (is_wide) {
      chosen.reason =
          StrCat(CountText(others), " columns", is_lasso ? "" : " beside the largest factor",
                 " are more than ", CountText(kMostColumns));
    } else if (!fits) {
      chosen.reason = StrCat("the products of ", CountText(columns), " columns take ",
                             BytesText(chosen.newton_bytes), " in each thread");
    }
    return chosen;
  }
  if (wanted == GlmMethod::kNewton && fits && is_wide) {
    chosen.notice = StrCat("newton takes ", BytesText(chosen.newton_bytes),
                           " of sums in each thread for the products of ", CountText(columns),
                           " columns; --method lbfgs does without them");
  }
  if (wanted == GlmMethod::kNewton && !fits) {
    return ResourceExhausted("newton wants ", BytesText(chosen.newton_bytes),
                             " of sums in each thread for the products of ", CountText(columns),
                             " columns, more than the ", BytesText(int64_t{4} << 30),
                             " that all may take; --method lbfgs does without them");
  }
  return chosen;
}

}  // namespace tenon
