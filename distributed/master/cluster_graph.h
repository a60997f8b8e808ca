// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "core/base/cancellation.h"
#include "core/base/hash_map.h"
#include "core/base/mutex.h"
#include "core/graph/graph.h"
#include "distributed/master/cancellable_mutex.h"
#include "distributed/master/cluster_program.h"
#include "distributed/master/master_environment.h"
#include "distributed/master/session_tasks.h"
#include "proto/config.pb.h"
#include "proto/graph.pb.h"
#include "runtime/compile/compiler.h"
#include "runtime/compile/feed_dependencies.h"

namespace tenon {

/// The graph of one master session: placed over the tasks that its nodes name, and compiled to a
/// ClusterProgram for each signature that is run. Thread-safe. The functions with a `cancellation`
/// block, and stop waiting with its Status when it is cancelled. The arguments of the constructor
/// outlive it.
class ClusterGraph {
 public:
  ClusterGraph(const MasterEnvironment& environment, const std::string& handle,
               const ConfigProto& config);

  /// Takes the first graph: imports, reaches the tasks that its nodes name, places. Blocks, at most
  /// for the start-up deadline; DeadlineExceeded then names the task, its address, the last error
  /// and which tasks are fine.
  Status Start(const GraphDef& graph, Cancellation* cancellation);
  /// Adds nodes. Aborted when `current_version` is not the graph's; on any error nothing has
  /// changed. Blocks as Start does.
  Status Extend(const GraphDef& graph, int64_t current_version, int64_t* new_version,
                Cancellation* cancellation);
  /// The program of that signature, compiled and registered with the workers if it is new.
  /// `dependencies`, unless null, gets which feeds each fetch depends on.
  StatusOr<std::shared_ptr<ClusterProgram>> Compile(
      const Signature& signature, Cancellation* cancellation,
      std::shared_ptr<const FeedDependencies>* dependencies = nullptr);
  /// The program if it has been compiled, or null. Does not block.
  std::shared_ptr<ClusterProgram> Find(const Signature& signature);

  int64_t num_nodes() const { return num_nodes_; }
  int64_t num_programs();
  /// The tasks that have been reached, but for the master's own. Does not block.
  std::vector<std::string> OtherTasks();
  /// Every device of every task of the cluster that answers.
  Status ListDevices(std::vector<DeviceAttributes>* devices, Cancellation* cancellation);
  /// Tells the workers that the session is still there, unless something else is being asked of
  /// them. Does not block.
  void TouchWorkers();
  /// Starts to delete the worker sessions, once nothing compiles any more.
  void DeleteWorkerSessions(SessionTasks::WorkerDeletions* deletions);

 private:
  Status CheckSize(int64_t nodes) const;
  /// Reaches the tasks that the nodes from `first_id` on name, and places these nodes.
  Status Take(int first_id, Cancellation* cancellation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status Reach(const std::set<std::string>& tasks, Cancellation* cancellation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status Place(int first_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  StatusOr<std::shared_ptr<ClusterProgram>> Register(Graph cut, const Signature& signature,
                                                     Cancellation* cancellation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const MasterEnvironment& environment_;
  const std::string& handle_;
  const ConfigProto& config_;
  const Compiler compiler_;

  CancellableMutex mu_;  // held while compiling, which blocks
  std::unique_ptr<Graph> graph_ ABSL_GUARDED_BY(mu_);
  std::atomic<int64_t> num_nodes_{0};  // of it, for who must not wait
  int64_t version_ ABSL_GUARDED_BY(mu_) = 0;
  SessionTasks tasks_ ABSL_GUARDED_BY(mu_);

  Mutex known_mu_;  // for who must not wait for mu_
  std::vector<std::string> other_tasks_ ABSL_GUARDED_BY(known_mu_);
  StringMap<std::shared_ptr<ClusterProgram>> programs_ ABSL_GUARDED_BY(known_mu_);
  /// By signature, for the partial runs that there are.
  StringMap<std::weak_ptr<const FeedDependencies>> dependencies_ ABSL_GUARDED_BY(known_mu_);
};

}  // namespace tenon
