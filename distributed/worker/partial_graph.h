// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/base/cancellation.h"
#include "core/base/mutex.h"
#include "core/memory/memory_account.h"
#include "distributed/protocol/worker_interface.h"
#include "distributed/worker/run_table.h"
#include "runtime/collectives/run_groups.h"
#include "runtime/execute/program.h"

namespace tenon {

/// A partition of a graph of a master's.
struct RegisteredGraph {
  std::shared_ptr<Program> program;
  GroupCounts group_parts;
};

/// A partition that its master feeds and fetches in several calls (RunGraph with is_partial). It
/// runs from Start until its nodes have ended, which they do early when a call is cancelled or the
/// step is aborted. Thread-safe.
class PartialGraph final : public std::enable_shared_from_this<PartialGraph> {
 public:
  PartialGraph(std::shared_ptr<const RegisteredGraph> graph, std::shared_ptr<MemoryAccount> memory,
               const RunSettings& settings, std::shared_ptr<DeviceGroups> groups)
      : graph_(std::move(graph)),
        memory_(std::move(memory)),
        settings_(settings),
        groups_(std::move(groups), graph_->group_parts) {}

  const RegisteredGraph* graph() const { return graph_.get(); }

  /// Starts the nodes, as part of `step`; `over` is called when the last one has ended. Once.
  void Start(std::shared_ptr<TaskRun> step, std::function<void()> over);
  /// Gives what call->recv_keys name as soon as it is there; of the last call, when the nodes have
  /// ended, too. `call` and `cancellation`, which may be null, live until `done`.
  void Take(RunGraphCall* call, const std::shared_ptr<TaskRun>& step, Cancellation* cancellation,
            WorkerInterface::Done done);

 private:
  struct Call;
  void OnEnd(const Status& status);
  /// Ends `call` when it waits for nothing any more.
  void Settle(const std::shared_ptr<Call>& call);

  const std::shared_ptr<const RegisteredGraph> graph_;
  const std::shared_ptr<MemoryAccount> memory_;
  const RunSettings settings_;
  RunGroups groups_;
  RunTrace trace_;
  Cancellation cancellation_;
  ProgramRun run_;
  const std::vector<Tensor> no_args_ = {};
  std::vector<Tensor> no_retvals_;
  std::function<void()> over_;
  std::shared_ptr<TaskRun> step_;  // until the end
  Mutex mu_;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  Status status_ ABSL_GUARDED_BY(mu_);  // of the nodes, when they have ended
  std::vector<std::shared_ptr<Call>> calls_ ABSL_GUARDED_BY(mu_);  // that wait
};

/// A fetch on a branch that was not taken: `number` of the call's keys.
Status DeadFetch(const RunGraphCall& call, size_t number);

}  // namespace tenon
