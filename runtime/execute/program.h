// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/device/device.h"
#include "core/graph/graph.h"
#include "runtime/compile/partition.h"
#include "runtime/compile/step_graph.h"
#include "runtime/execute/executor.h"
#include "runtime/execute/kernel_cache.h"
#include "runtime/execute/running_calls.h"
#include "runtime/passes/pass.h"
#include "runtime/session/session.h"

namespace tenon {

/// The dtypes and shapes that the feeds of a signature must have.
class FeedSpec {
 public:
  /// REQUIRES: the signature has passed MakeStepGraph.
  FeedSpec(const Graph& graph, const Signature& signature);
  /// InvalidArgument naming the feed, what it is and what it must be.
  Status Check(const std::vector<Tensor>& feeds) const;
  /// The same of feed `i` alone.
  Status CheckOne(size_t i, const Tensor& feed) const;

 private:
  struct Feed {
    std::string name;
    DType dtype;
    PartialShape shape;
  };
  std::vector<Feed> feeds_;
};

/// The devices of one task and what runs on them.
struct LocalRuntime {
  std::vector<Device*> devices;  // the first is the CPU on which constants are folded
  ThreadPool* pool = nullptr;
  /// To be closed before the devices and the pool go.
  std::shared_ptr<RunningCalls> running = std::make_shared<RunningCalls>();
  /// Whoever copies this keeps the devices where they belong to one session.
  std::shared_ptr<void> owner = nullptr;

  Device* Find(const std::string& name) const;
};

/// A placed step graph whose nodes are all on devices of this process, cut by device and ready to
/// run. Thread-safe.
class Program {
 public:
  /// With those passes of PassStage::kDevice that are wanted.
  static StatusOr<std::unique_ptr<Program>> Create(Graph graph, const LocalRuntime& runtime,
                                                   const PassOptions& passes, KernelCache& kernels);

  /// What one run needs from outside. Rendezvous, cancellation and step resources must live until
  /// `done`.
  struct Call {
    std::vector<Tensor> args;
    std::vector<Tensor> retvals;
    Rendezvous* rendezvous = nullptr;
    Cancellation* cancellation = nullptr;
    ResourceStore* step_resources = nullptr;
    MemoryAccount* memory = nullptr;  // whom the step's tensors are charged to; may be null
    Trace* trace = nullptr;
  };
  /// Runs the partitions; the calling thread works on one of them. The first error is the result.
  Status Run(Call& call);
  /// Starts the partitions, with little work on the calling thread where there is a pool; `done` is
  /// called at the end, perhaps before this returns.
  void RunAsync(Call& call, std::function<void(Status)> done);

  int num_args() const { return num_args_; }
  int num_retvals() const { return num_retvals_; }
  /// Whether steps send or receive, and so need a rendezvous.
  bool has_transfers() const { return has_transfers_; }

 private:
  Program() = default;
  /// `borrowed` as Executor::RunAsync's.
  void Start(Call& call, bool borrowed, std::function<void(Status)> done);

  std::shared_ptr<void> owner_;  // of the devices; goes last
  std::vector<std::unique_ptr<Executor>> executors_;
  int num_args_ = 0;
  int num_retvals_ = 0;
  bool has_transfers_ = false;
};

}  // namespace tenon
