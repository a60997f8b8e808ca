// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "distributed/master/master_environment.h"

namespace tenon {

/// Finds out, for people, which of the tasks that a step waits for do not answer. Thread-safe.
class SilentTasks {
 public:
  explicit SilentTasks(std::shared_ptr<const MasterEnvironment> environment)
      : environment_(std::move(environment)) {}

  /// Asks the tasks whether they are there. The environment's `notice` gets a line for each that
  /// has not answered the question of an earlier call, or not well, every kNoticePause; `waited` is
  /// how long the step has run. Does not block.
  void Ask(const std::vector<std::string>& tasks, Clock::Duration waited);
  /// No step waits any more.
  void Forget();

 private:
  struct Question;
  void Tell(const std::string& task, Clock::Duration waited, const Status& error) const;

  const std::shared_ptr<const MasterEnvironment> environment_;
  Mutex mu_;
  std::map<std::string, std::shared_ptr<Question>> questions_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, Clock::Time> told_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
