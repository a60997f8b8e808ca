// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "distributed/grpc/remote_worker.h"
#include "distributed/grpc/rpc/blocking_calls.h"

namespace tenon {

/// The directories of the clusters that sessions have brought. Sessions with the same cluster share
/// one, which stays until its place is needed. Thread-safe.
class GrpcSessionDirectories {
 public:
  static constexpr size_t kMax = 64;

  /// With credentials, only addresses of `own` may be called: who may open sessions is not to send
  /// them elsewhere. The poller must outlive this.
  /// `calls` is used while Get runs.
  GrpcSessionDirectories(const ClusterSpec& own, Credentials credentials, Poller& poller,
                         BlockingCalls& calls);

  /// See SessionDirectories. `worker` is the one in this process.
  StatusOr<std::shared_ptr<WorkerDirectory>> Get(const ClusterSpec& cluster,
                                                 const std::string& own_task,
                                                 const std::shared_ptr<WorkerInterface>& worker);
  /// Lets go of the worker.
  void Close();

 private:
  struct Entry {
    std::shared_ptr<GrpcWorkerDirectory> directory;
    std::string own_task;
  };

  Status CheckAddresses(const ClusterSpec& cluster) const;
  /// Gives up a directory that no session uses.
  Status MakeRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const ClusterSpec own_;
  const Credentials credentials_;
  Poller& poller_;
  BlockingCalls& calls_;
  Mutex mu_;
  std::map<std::string, Entry> directories_ ABSL_GUARDED_BY(mu_);  // by cluster and own task
};

}  // namespace tenon
