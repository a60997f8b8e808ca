// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "data/table/table_format.h"
#include "ops/glm/glm_family.h"
#include "train/glm/glm_result.h"
#include "train/glm/table_tasks.h"

namespace tenon {

/// The fate of a level whose responses are all 0, or with a binomial family all 1: its
/// coefficient has no finite estimate.
enum class SeparatedLevels : uint8_t {
  kDrop,   // the level is left out with its rows
  kKeep,   // as in R, the estimate is as large as the last step left it
  kError,  // InvalidArgument names them
};

struct GlmOptions {
  GlmFamily family = GlmFamily::kGaussian;
  std::optional<GlmLink> link = std::nullopt;  // the family's default
  std::string weights = {};                    // a column: R's prior weights
  SeparatedLevels separated = SeparatedLevels::kDrop;
  double level = 0.95;  // of confidence intervals

  TableFormat format = {};
  std::vector<std::string> categories = {};  // columns of texts, whatever their values
  int64_t max_rejects = 0;                   // records that may be left out
  /// Other tables, of whose rows the result has metrics too; none: none.
  std::vector<std::string> evaluation = {};
  int64_t unit_bytes = int64_t{8} << 20;  // the size of a part that is read by itself

  /// CPU devices of the tasks that read the table, and how a session is opened on them; without the
  /// second, in this process.
  std::vector<std::string> devices = {""};
  TableTasks::SessionMaker make_session = nullptr;
  /// Called after each pass over the data.
  std::function<void(const GlmIteration& iteration)> progress = nullptr;
};

/// Fits a generalised linear model to the tables in `files` (FindTableFiles), as R's glm() does.
/// The errors name the file and line of a bad value. A model that has not converged is a result
/// that says so.
StatusOr<GlmResult> FitGlm(std::string_view formula, const std::vector<std::string>& files,
                           const GlmOptions& options = {});

}  // namespace tenon
