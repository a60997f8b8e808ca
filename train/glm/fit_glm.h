// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "data/table/table_format.h"
#include "ops/glm/glm_family.h"
#include "train/glm/model/glm_penalty.h"
#include "train/glm/result/glm_result.h"
#include "train/glm/rows/stream_options.h"
#include "train/glm/rows/table_tasks.h"
#include "train/glm/solvers/fit_method.h"

namespace tenon {

/// The fate of a level whose responses are all 0, or with a binomial family all 1: its
/// coefficient has no finite estimate.
enum class SeparatedLevels : uint8_t {
  kDrop,   // the level is left out with its rows
  kKeep,   // as in R, the estimate is as large as the last step left it
  kError,  // InvalidArgument names them
};

/// Coefficients in the units of the data. All points of a fit share the names.
struct GlmPoint {
  std::shared_ptr<const std::vector<std::string>> names;
  std::vector<double> values;

  bool empty() const { return values.empty(); }
};

struct GlmOptions {
  GlmFamily family = GlmFamily::kGaussian;
  std::optional<GlmLink> link = std::nullopt;  // the family's default
  std::string weights = {};                    // a column: R's prior weights
  SeparatedLevels separated = SeparatedLevels::kDrop;
  double level = 0.95;  // of confidence intervals
  /// Under a penalty no level is left out, and there are no standard errors.
  GlmPenalty penalty = {};
  GlmMethod method = GlmMethod::kAuto;
  /// White's sandwich in place of the inverse information: HC1, with n / (n - p).
  bool robust = false;
  /// FTRL in place of an exact fit, without inference; `start` and `robust` do not go with it.
  std::optional<StreamFitOptions> stream = std::nullopt;

  TableFormat format = {};
  std::vector<std::string> categories = {};  // columns of texts, whatever their values
  int64_t max_rejects = 0;                   // records that may be left out
  /// Other tables, of whose rows the result has metrics too; none: none.
  std::vector<std::string> evaluation = {};
  std::string rejects_file = {};  // for these; empty: none
  /// Bytes that the rows may take in each task's memory; those beyond are read again in each pass.
  /// 0: as they need.
  int64_t memory = 0;
  /// The size of a part that is read by itself; 0: by the size of the whole, whatever reads it.
  int64_t unit_bytes = 0;

  /// CPU devices of the tasks that read the table, and how a session is opened on them; without the
  /// second, in this process.
  std::vector<std::string> devices = {""};
  TableTasks::SessionMaker make_session = nullptr;
  /// The coefficients to begin with, in the units of the data, by their names as R has them; others
  /// begin at 0. Empty: where the intercept alone is best.
  GlmPoint start = {};
  /// Called after each pass of the fit, with the coefficients that it was at.
  std::function<void(const GlmIteration& iteration, const GlmPoint& at)> progress = nullptr;
  /// Called with a line about what is about to take much memory.
  std::function<void(const std::string& line)> notice = nullptr;
};

/// Fits a generalised linear model to the tables in `files` (FindTableFiles), as R's glm() does.
/// The errors name the file and line of a bad value. A model that has not converged is a result
/// that says so.
StatusOr<GlmResult> FitGlm(std::string_view formula, const std::vector<std::string>& files,
                           const GlmOptions& options = {});

}  // namespace tenon
