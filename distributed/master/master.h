// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "distributed/master/master_session.h"
#include "distributed/protocol/request_ids.h"
#include "proto/master.pb.h"

namespace tenon {

/// The master part of a task: the sessions of its clients. Follows TensorFlow's MasterService,
/// error codes and texts included. Thread-safe. All functions but RunStepAsync block; what they
/// wait for is given up when `cancellation`, which may be null, is cancelled, and at Stop.
class Master {
 public:
  explicit Master(MasterEnvironment environment);
  /// Closes the sessions. REQUIRES: no other function runs.
  ~Master();

  Status CreateSession(const CreateSessionRequest& request, CreateSessionResponse* response,
                       Cancellation* cancellation);
  Status ExtendSession(const ExtendSessionRequest& request, ExtendSessionResponse* response,
                       Cancellation* cancellation);
  Status CloseSession(const CloseSessionRequest& request);
  Status MakeCallable(const MakeCallableRequest& request, MakeCallableResponse* response,
                      Cancellation* cancellation);
  /// Makes a step of a call of a callable but for the values of its feeds, which is then run as
  /// any.
  Status ReadCallable(const RunCallableRequest& request, ClientCall* call);
  Status ReleaseCallable(const ReleaseCallableRequest& request);
  /// Prepares a step that RunStepAsync runs in several calls.
  Status SetUpPartialRun(const PartialRunSetupRequest& request, PartialRunSetupResponse* response,
                         Cancellation* cancellation);
  Status ListDevices(const ListDevicesRequest& request, ListDevicesResponse* response,
                     Cancellation* cancellation);
  /// Closes all sessions and drops the resources of the named containers on every task.
  Status Reset(const ResetRequest& request, Cancellation* cancellation);

  /// Runs a step of the call's session: see MasterSession::RunStepAsync. Aborted for an unknown
  /// one.
  void RunStepAsync(ClientCall* call, Cancellation* cancellation, std::function<void(Status)> done);
  bool RunStepMayBlock(const ClientCall& call);
  /// Compiles the signature of a step, so that it starts without blocking. Blocks.
  Status Compile(const ClientCall& call, Cancellation* cancellation);

  /// Cancels, with `why`, the steps of all sessions and whatever else runs or comes later. Does not
  /// block, and tells the workers nothing: the destructor does.
  void Stop(const Status& why);

  /// Looks for idle sessions from now on, also for those of the worker (on_sweep). To be called
  /// when there is a session: a server without any needs no timer.
  void StartSweeping();

  /// For people: sessions and their steps.
  void Describe(cluster::ServerStatusResponse* out);

 private:
  using Sessions = StringMap<std::shared_ptr<MasterSession>>;

  std::shared_ptr<MasterSession> Find(const std::string& handle);
  Sessions TakeSessions();
  static void CloseAll(const Sessions& sessions, const Status& why);
  /// Closes the sessions that nobody has used for long, and looks again later.
  void Sweep();
  void SweepLater();
  /// Asks now and then for whom long steps wait.
  void WatchLater();

  /// What a session is made of: the master's own, or one for the cluster that the request brings.
  StatusOr<std::shared_ptr<const MasterEnvironment>> EnvironmentFor(
      const CreateSessionRequest& request) const;

  const std::shared_ptr<const MasterEnvironment> shared_environment_;
  const MasterEnvironment& environment_ = *shared_environment_;
  RequestIds step_requests_, set_up_requests_, callable_requests_;
  Cancellation stopping_;
  Mutex mu_;
  Sessions sessions_ ABSL_GUARDED_BY(mu_);
  std::atomic<bool> sweeping_{false}, watching_{false};
  int64_t opening_ ABSL_GUARDED_BY(mu_) = 0;  // sessions on their way
  const std::shared_ptr<std::atomic<int64_t>> running_steps_ =
      std::make_shared<std::atomic<int64_t>>(0);  // the last step ends after the master perhaps
  /// What a timer may reach after the master is gone: null then.
  struct Alive {
    Mutex mu;
    Master* master ABSL_GUARDED_BY(mu);
  };
  const std::shared_ptr<Alive> alive_ = std::make_shared<Alive>();
};

}  // namespace tenon
