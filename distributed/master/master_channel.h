// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/base/status.h"
#include "distributed/master/master.h"
#include "distributed/protocol/credentials.h"

namespace tenon {

/// A client's way to a master: in this process or over the network. Functions block unless they
/// are asynchronous. Thread-safe.
class MasterChannel {
 public:
  virtual ~MasterChannel() = default;
  virtual Status CreateSession(const CreateSessionRequest& request,
                               CreateSessionResponse* response) = 0;
  virtual Status ExtendSession(const ExtendSessionRequest& request,
                               ExtendSessionResponse* response) = 0;
  virtual Status CloseSession(const CloseSessionRequest& request) = 0;
  virtual Status RunStep(ClientCall* call) = 0;
  /// `done` is called once with how the step has ended, perhaps by another thread and perhaps
  /// before the return; it must not block. The call lives until then.
  virtual void RunStepAsync(ClientCall* call, std::function<void(Status)> done) = 0;
};

/// To `master`, which must outlive the channel.
std::unique_ptr<MasterChannel> MakeLocalChannel(Master& master);

/// Over gRPC to host:port. Unavailable when it cannot be reached.
std::unique_ptr<MasterChannel> MakeGrpcChannel(const std::string& address,
                                               const Credentials& credentials);

}  // namespace tenon
