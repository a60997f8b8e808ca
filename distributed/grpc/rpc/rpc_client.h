// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "core/base/cancellation.h"
#include "core/base/mutex.h"
#include "distributed/grpc/polling/poller.h"
#include "distributed/protocol/credentials.h"

namespace tenon {

/// Calls with one message each way to one server, all through one poller. Thread-safe.
class RpcClient {
 public:
  /// Gets how a call ended and, when well, the answer; by the poller, or inside Call when
  /// the call was not made.
  using End = std::function<void(const grpc::Status& status, grpc::ByteBuffer* response)>;

  /// Everything outlives the client.
  RpcClient(const std::shared_ptr<grpc::Channel>& channel, const Credentials& credentials,
            Poller& poller)
      : channel_(channel), stub_(channel), credentials_(credentials), poller_(poller) {}

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

  /// Tries now to connect to a server that was not there before, in place of later. Calls fail in
  /// the meantime as they did.
  void ConnectSoon() { grpc::experimental::ChannelResetConnectionBackoff(channel_.get()); }

  /// A limit of 0 is none. `cancellation`, unless null, ends the call early; it must live until
  /// `end` is called.
  void Call(const std::string& method, const grpc::ByteBuffer& request,
            std::chrono::milliseconds limit, Cancellation* cancellation, End end);

  /// Ends what runs, with that error.
  void FailRunning(const Status& why);

  /// Ends what runs; later calls are not made. Blocks until every `end` has returned; not to be
  /// called by the poller.
  void Close();

 private:
  class Running;

  const std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  const Credentials& credentials_;
  Poller& poller_;
  Cancellation closing_;
  Mutex mu_;
  CondVar idle_;
  /// Cancelled to fail the calls that have begun since the last FailRunning.
  std::shared_ptr<Cancellation> lost_ ABSL_GUARDED_BY(mu_) = std::make_shared<Cancellation>();
  int running_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace tenon
