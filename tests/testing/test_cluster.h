// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "distributed/protocol/server.h"

namespace tenon::testing {

/// The tasks of a cluster, jobs "ps" and "worker", as servers of this process over real gRPC. Each
/// has so many CPU devices, and runs kernels on two threads.
class TestCluster {
 public:
  TestCluster(int num_ps, int num_workers, const ServerLimits& limits = {}, int cpus = 1);
  const ClusterSpec& spec() const { return spec_; }

  void StartAll();
  void StartOne(const std::string& job, int task);
  Server& at(const std::string& job, int task) { return *servers_.at({job, task}); }
  void Stop(const std::string& job, int task) { servers_.erase({job, task}); }

 private:
  ClusterSpec spec_;
  const ServerLimits limits_;
  const int cpus_;
  std::map<std::pair<std::string, int>, std::unique_ptr<Server>> servers_;
};

}  // namespace tenon::testing
