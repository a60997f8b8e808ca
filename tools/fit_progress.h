// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/glm/fit_checkpoint.h"
#include "train/glm/fit_glm.h"

namespace tenon::tools {

/// Lines about a fit that takes long, and its checkpoint in the folder of its model. Used by one
/// thread.
class FitProgress {
 public:
  /// Sets the progress of `options`, and their start where `model_dir` has a checkpoint of this
  /// fit. Without a `model_dir` there is none. `fit` tells it from others.
  static StatusOr<std::unique_ptr<FitProgress>> Create(const std::string& model_dir,
                                                       std::string_view fit,
                                                       const std::vector<std::string>& files,
                                                       bool quiet, GlmOptions* options);
  /// The fit has ended: its checkpoint goes.
  Status End() const { return checkpoint_ ? checkpoint_->Remove() : OkStatus(); }

 private:
  explicit FitProgress(bool quiet);
  void Pass(const GlmIteration& iteration, const GlmPoint& at);

  const bool quiet_;
  Clock::Time next_;
  std::optional<FitCheckpoint> checkpoint_;
};

}  // namespace tenon::tools
