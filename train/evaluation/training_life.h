// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "core/base/clock.h"
#include "core/base/status.h"
#include "distributed/protocol/credentials.h"
#include "runtime/device/machine_clock.h"

namespace tenon {

/// Options of TrainingLife, by name.
struct TrainingLifeOptions {
  /// Where the chief's server is, "host:port".
  std::string chief;
  Credentials credentials = {};
  /// How long the chief may take to come.
  std::chrono::milliseconds start_up_deadline{60000};
  /// How long it may be gone: the same command may start it again.
  std::chrono::milliseconds patience{10000};
  /// Gets a line when the chief has not come; may be null.
  std::function<void(const std::string& line)> notice = {};
  Clock* clock = &MachineClock();
};

/// Whether a training goes on, for an evaluator, which has no server that anybody could tell: its
/// chief is asked. Used by one thread at a time.
class TrainingLife {
 public:
  explicit TrainingLife(TrainingLifeOptions options);

  /// False once the chief has been gone for `patience`, or has not come within the start-up
  /// deadline. One that answers late is there. Errors of the connection that do not pass, such as
  /// other credentials. Blocks for some seconds at most.
  StatusOr<bool> GoesOn();

 private:
  const TrainingLifeOptions options_;
  Clock& clock_;
  bool has_come_ = false;
  Clock::Time silent_since_;
};

}  // namespace tenon
