// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/channel.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "distributed/grpc/polling/poller.h"
#include "distributed/protocol/credentials.h"
#include "distributed/protocol/worker_interface.h"
#include "proto/master.pb.h"

namespace tenon {

class ClientStream;

/// The calls of every step to one task, of other tasks and of clients, over PeerService's stream,
/// which is opened at the first call and again when it has broken. The functions return false when
/// there is no open stream: not yet, or because the task's server has no PeerService; the call must
/// then go another way, and `done` is untouched. Otherwise they are as WorkerInterface's.
/// Thread-safe.
class PeerCalls {
 public:
  /// Everything outlives the object. `named` words a failure of the connection; `on_loss` gets it
  /// when a stream has broken that was open, by the poller.
  using Named = std::function<Status(const grpc::Status&)>;
  using OnLoss = std::function<void(const Status& why)>;
  PeerCalls(std::string address, const Credentials& credentials, Poller& poller, Named named,
            OnLoss on_loss);
  /// REQUIRES: Disconnect has returned.
  ~PeerCalls();

  bool RunGraph(RunGraphCall* call, Cancellation* cancellation, WorkerInterface::Done& done);
  bool RecvTensor(RecvTensorCall* call, Cancellation* cancellation, WorkerInterface::Done& done);
  /// `request` is taken, unless the result is false, as for large ones; `response` lives until
  /// `done`.
  bool RunStep(RunStepRequest& request, RunStepResponse* response, WorkerInterface::Done& done);
  /// Nobody learns how it ends.
  bool CleanupGraph(const CleanupGraphRequest& request);

  /// Fails what runs and opens nothing more. Blocks; not to be called by the poller.
  void Disconnect();

 private:
  std::shared_ptr<ClientStream> Current();

  const std::string address_;
  const Credentials& credentials_;
  Poller& poller_;
  const Named named_;
  const OnLoss on_loss_;
  Mutex mu_;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  std::shared_ptr<grpc::Channel> channel_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<ClientStream> stream_ ABSL_GUARDED_BY(mu_);
  std::vector<std::shared_ptr<ClientStream>> earlier_ ABSL_GUARDED_BY(mu_);
  Clock::Time opened_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
