// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/graph/graph.h"
#include "distributed/master/client_call.h"
#include "distributed/master/step_ids.h"
#include "distributed/protocol/worker_calls.h"
#include "distributed/protocol/worker_interface.h"
#include "proto/config.pb.h"
#include "runtime/compile/feed_spec.h"

namespace tenon {

/// What one call feeds and fetches of a step that runs in several.
struct CallShare {
  int64_t step_id = 0;
  /// By number of the signature: where the call has it, or -1.
  std::vector<int> feeds, fetches;
  bool is_last = false;  // the call ends with the step
};

/// A signature whose partitions are registered with the workers. Thread-safe.
class ClusterProgram {
 public:
  /// What registering and running needs to know of the session.
  struct Environment {
    std::string session_handle;
    std::string task;  // the master's
    std::shared_ptr<StepIds> step_ids;
    WorkerDirectory* workers = nullptr;
    /// Incarnation of a device by full name.
    std::function<uint64_t(const std::string& device)> incarnation;
    /// Passed on to the workers.
    ConfigProto config;
  };

  /// `graph` is the placed and optimised step graph. Blocks until every worker has its partition,
  /// or `cancellation` is cancelled. An error names the task; no worker keeps a partition then.
  static StatusOr<std::unique_ptr<ClusterProgram>> Register(Graph graph, const Signature& signature,
                                                            FeedSpec feeds,
                                                            const Environment& environment,
                                                            Cancellation* cancellation);

  /// Runs the step. `call`, `cancellation` and the ClusterProgram must live until `done`. When one
  /// partition fails the others are cancelled; the result is the error that came first, which is
  /// its cause. Then every worker is told to clean up.
  void RunAsync(ClientCall* call, Cancellation* cancellation, std::function<void(Status)> done);
  /// The same for one call of a step that runs in several, of which PartialRun keeps account; it
  /// checks the feeds, and cleans up.
  void RunShareAsync(ClientCall* call, CallShare share, Cancellation* cancellation,
                     std::function<void(Status)> done);
  /// Tells every worker that the step is over. Does not block.
  void CleanUp(int64_t step_id) const;

  /// The number of a step that begins.
  int64_t NewStepId() { return step_ids_->Next(); }
  /// How many whole steps have been asked for before.
  int64_t CountRun() { return runs_.fetch_add(1, std::memory_order_relaxed); }
  /// What the feeds must be.
  const FeedSpec& feeds() const { return feeds_; }

 private:
  struct Partition {
    std::string task;
    std::shared_ptr<WorkerInterface> worker;
    std::string graph_handle;
    std::vector<std::pair<int, std::string>> feeds;    // index, rendezvous key
    std::vector<std::pair<int, std::string>> fetches;  // index, rendezvous key
    GraphDef graph;
  };
  struct Execution;
  void Start(std::unique_ptr<Execution> execution);
  using Registrations = WorkerCalls<RegisterGraphRequest, RegisterGraphResponse>;

  explicit ClusterProgram(FeedSpec feeds) : feeds_(std::move(feeds)) {}
  Status AddPartition(const std::string& task, Graph graph, const Signature& signature,
                      const Environment& environment);
  Status RegisterPartitions(const Environment& environment, Cancellation* cancellation);
  /// Takes back what goes well.
  void Deregister(Registrations& calls);

  const FeedSpec feeds_;
  std::string session_handle_;
  std::shared_ptr<StepIds> step_ids_;
  std::vector<Partition> partitions_;
  std::atomic<int64_t> runs_{0};
};

}  // namespace tenon
