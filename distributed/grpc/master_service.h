// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

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
  /// At most `most_waiting` steps wait until their signatures are compiled.
  StepRunner(Master& master, BlockingCalls& calls, ThreadPool& pool, int64_t most_waiting)
      : master_(master), calls_(calls), pool_(pool), most_waiting_(most_waiting) {}
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
  /// A step that waits until its signature is compiled.
  struct Waiting {
    std::function<void()> run;
    Done end;
    Cancellation* cancellation;
  };

  void Start(const std::shared_ptr<ClientCall>& call, Cancellation* cancellation, bool here,
             const Done& end);
  /// Has the signature of a call compiled, once for all steps that wait for it, on a thread that
  /// may block.
  void Compile(const ClientCall& call, Waiting waiting);
  /// The cancellation of the step for which a signature is to be compiled; none when no step waits
  /// any more, and then the signature is forgotten.
  std::optional<Cancellation*> FirstOf(const std::string& key);
  Waiting TakeFirst(const std::string& key);
  /// Runs the steps that have waited, or ends them.
  void EndWaiting(const std::string& key, const Status& compiled);
  /// Calls `end`, which writes what `call` has fetched; elsewhere when that is much.
  void End(const ClientCall& call, std::function<void()> end);

  Master& master_;
  BlockingCalls& calls_;
  ThreadPool& pool_;
  const int64_t most_waiting_;
  Mutex mu_;
  CondVar none_left_;
  StringMap<std::deque<Waiting>> compiling_ ABSL_GUARDED_BY(mu_);  // by session and signature
  int64_t num_waiting_ ABSL_GUARDED_BY(mu_) = 0;                   // of all signatures
};

/// Serves `master` as tensorflow.MasterService, its steps by `steps`; all must outlive the server.
/// Steps of one session run at once, and start where the poller waits.
void ServeMaster(RpcServer& server, Master& master, BlockingCalls& calls, StepRunner& steps);

}  // namespace tenon
