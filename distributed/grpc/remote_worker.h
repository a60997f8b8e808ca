// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/base/mutex.h"
#include "distributed/grpc/polling/poller.h"
#include "distributed/protocol/cluster_spec.h"
#include "distributed/protocol/credentials.h"
#include "distributed/protocol/worker_interface.h"

namespace grpc {
class Channel;
}

namespace tenon {

class RemoteWorker;

/// Workers over gRPC, one channel a task, opened at the first use. Calls to a task that cannot be
/// reached, or dies, fail with Unavailable naming task and address.
class GrpcWorkerDirectory final : public WorkerDirectory {
 public:
  /// The poller must outlive the directory.
  GrpcWorkerDirectory(ClusterSpec cluster, Credentials credentials, Poller& poller)
      : cluster_(std::move(cluster)), credentials_(std::move(credentials)), poller_(poller) {}
  /// No call runs any more.
  ~GrpcWorkerDirectory() override;

  /// Serves `task` in this process; it must outlive the calls made to it.
  void SetLocal(const std::string& task, std::shared_ptr<WorkerInterface> worker);

  StatusOr<std::shared_ptr<WorkerInterface>> Get(const std::string& task) override;
  std::string Address(const std::string& task) const override;
  /// Whether a call to `task` has been answered.
  bool HasAnswered(const std::string& task);
  /// The channel to `task` that is connected now; null if none is.
  std::shared_ptr<grpc::Channel> ConnectedTo(const std::string& task);

 private:
  const ClusterSpec cluster_;
  const Credentials credentials_;
  Poller& poller_;
  Mutex mu_;
  std::map<std::string, std::shared_ptr<RemoteWorker>> remotes_;  // grows under mu_
  std::map<std::string, std::shared_ptr<WorkerInterface>> workers_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
