// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/op/run.h"
#include "runtime/execute/executor.h"

namespace tenon {

/// A signature's graph, compiled: one plan for each device of this process, ready to run any number
/// of times at once. Immutable and thread-safe. Made by a Compiler.
class Program {
 public:
  /// `pool`, which may be null, and the plans' devices must outlive the program, which keeps
  /// `owner` to that end.
  Program(std::vector<std::unique_ptr<ExecutionPlan>> plans, ThreadPool* pool,
          std::shared_ptr<void> owner);

  /// Runs it to its end; the calling thread works on one of the plans. `retvals` gets one tensor
  /// for each fetch. The first error is the result.
  Status Execute(const ProgramRun& run, const std::vector<Tensor>& args,
                 std::vector<Tensor>* retvals);
  /// Starts it, with little work on the calling thread where there is a pool; `done` is called at
  /// the end, perhaps before this returns. The other arguments must live until then.
  void Start(const ProgramRun& run, const std::vector<Tensor>& args, std::vector<Tensor>* retvals,
             std::function<void(Status)> done);

  /// Whether its runs send or receive, and so need a rendezvous.
  bool has_transfers() const { return has_transfers_; }

 private:
  /// `borrowed` as Executor::Start's.
  void StartAll(const ProgramRun& run, const std::vector<Tensor>& args,
                std::vector<Tensor>* retvals, bool borrowed, std::function<void(Status)> done);

  const std::shared_ptr<void> owner_;  // of the devices; goes last
  std::vector<std::unique_ptr<Executor>> executors_;
  size_t num_retvals_ = 0;
  bool has_transfers_ = false;
};

}  // namespace tenon
