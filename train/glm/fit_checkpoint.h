// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/clock.h"
#include "data/table/table_files.h"
#include "runtime/device/machine_clock.h"
#include "train/glm/fit_glm.h"

namespace tenon {

/// Where a fit was, in a file, for one that is started again after its process has died. Used by
/// one thread at a time.
class FitCheckpoint {
 public:
  struct Saved {
    int64_t pass;
    GlmPoint coefficients;
  };

  /// `fit` tells this fit from others: its formula, family and so on.
  FitCheckpoint(std::string path, std::string_view fit, const std::vector<TableFile>& files,
                Clock& clock = MachineClock());

  /// The content of the file; nothing where there is none, where it is of another fit, or where one
  /// of the table's files was changed since. DataLoss for a file that is no checkpoint.
  StatusOr<std::optional<Saved>> Load() const;
  /// Saves, at most once a second and in a tenth of the time.
  Status Save(int64_t pass, const GlmPoint& coefficients);
  /// Removes the file, if there is one.
  Status Remove() const;

 private:
  const std::string path_;
  const std::string fit_;  // a message FitCheckpoint without coefficients
  Clock& clock_;
  Clock::Time next_;
};

}  // namespace tenon
