// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "core/status.h"
#include "distributed/cluster_spec.h"

namespace tenon {

/// Which tasks have reported that they ended, and how; what a parameter server waits for.
/// Thread-safe.
class JobEnd {
 public:
  explicit JobEnd(ClusterSpec cluster) : cluster_(std::move(cluster)) {}

  /// A task's report. InvalidArgument when the cluster has no such task. The first report of a task
  /// counts.
  Status Report(const std::string& job, int task, bool failed, const std::string& message);
  /// See Server::WaitForJobEnd.
  Status Wait(const std::string& job, std::chrono::milliseconds limit);
  /// Makes every Wait return Cancelled.
  void Stop();

  /// "/job:worker/replica:0/task:0" and so on.
  std::vector<std::string> Ended() const;

 private:
  std::string Missing(const std::string& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const ClusterSpec cluster_;
  mutable Mutex mu_;
  CondVar changed_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::map<std::pair<std::string, int>, Status> ended_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
