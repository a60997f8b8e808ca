// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/base/hash_map.h"
#include "core/base/mutex.h"
#include "distributed/grpc/rpc/blocking_calls.h"
#include "distributed/grpc/rpc/rpc_server.h"
#include "distributed/master/master.h"
#include "runtime/device/thread_pool.h"

namespace tenon {

/// How clients' steps are run, whatever they come by. Thread-safe; everything outlives it.
class StepRunner {
 public:
  using Done = std::function<void(Status)>;
  StepRunner(Master& master, BlockingCalls& calls, ThreadPool& pool)
      : master_(master), calls_(calls), pool_(pool) {}
  /// Waits for what compiles. No step is started any more.
  ~StepRunner();
  StepRunner(const StepRunner&) = delete;
  StepRunner& operator=(const StepRunner&) = delete;

  /// Starts a step, on this thread when it is `here`, and calls `done` with how the call has ended.
  /// The request is not needed after the return; the rest lives until `done`.
  void RunStep(const RunStepRequest& request, RunStepResponse* response, Cancellation* cancellation,
               bool here, const Done& done);
  void RunCallable(const RunCallableRequest& request, RunCallableResponse* response,
                   Cancellation* cancellation, const Done& done);

 private:
  /// A step that waits until another one has had its signature compiled.
  struct Waiting {
    std::function<void()> run;
    Done end;
  };

  void Start(const std::shared_ptr<ClientCall>& call, Cancellation* cancellation, bool here,
             const Done& end);
  /// Runs `run`, which compiles, on a thread that may block, and then those that came meanwhile.
  void Compile(const std::shared_ptr<ClientCall>& call, Waiting first);
  /// Calls `end`, which writes what `call` has fetched; elsewhere when that is much.
  void End(const ClientCall& call, std::function<void()> end);

  Master& master_;
  BlockingCalls& calls_;
  ThreadPool& pool_;
  Mutex mu_;
  CondVar none_left_;
  StringMap<std::vector<Waiting>> compiling_ ABSL_GUARDED_BY(mu_);  // by session and signature
};

/// Serves `master` as tensorflow.MasterService, its steps by `steps`; all must outlive the server.
/// Steps of one session run at once, and start where the poller waits.
void ServeMaster(RpcServer& server, Master& master, BlockingCalls& calls, StepRunner& steps);

}  // namespace tenon
