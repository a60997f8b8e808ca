// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "distributed/master_session.h"
#include "proto/master.pb.h"

namespace tenon {

/// The master part of a task: the sessions of its clients. Follows TensorFlow's MasterService,
/// error codes and texts included. Thread-safe. All functions but RunStepAsync block.
class Master {
 public:
  explicit Master(MasterEnvironment environment) : environment_(std::move(environment)) {}
  ~Master();

  Status CreateSession(const CreateSessionRequest& request, CreateSessionResponse* response);
  Status ExtendSession(const ExtendSessionRequest& request, ExtendSessionResponse* response);
  Status CloseSession(const CloseSessionRequest& request);
  Status ListDevices(const ListDevicesRequest& request, ListDevicesResponse* response);
  /// Closes all sessions and drops the resources of the named containers on every task.
  Status Reset(const ResetRequest& request);

  /// As MasterSession::RunStepAsync. Aborted for an unknown session.
  void RunStepAsync(RunStepCall* call, Cancellation* cancellation,
                    std::function<void(Status)> done);
  bool RunStepMayBlock(const RunStepCall& call);

  /// How many sessions are open.
  int num_sessions();

 private:
  std::shared_ptr<MasterSession> Find(const std::string& handle);

  const MasterEnvironment environment_;
  Mutex mu_;
  StringMap<std::shared_ptr<MasterSession>> sessions_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
