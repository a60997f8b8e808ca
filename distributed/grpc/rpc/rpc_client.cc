// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/rpc/rpc_client.h"

#include <algorithm>
#include <iterator>

#include "distributed/grpc/rpc/deadline.h"
#include "distributed/grpc/rpc/security.h"
#include "distributed/grpc/rpc/status.h"

namespace tenon {

/// One call on its way. Deletes itself.
class RpcClient::Running final : public Completion {
 public:
  Running(RpcClient& client, Cancellation* own, End end)
      : client_(client), follows_{{own}, {&client.closing_}, {nullptr}}, end_(std::move(end)) {
    MutexLock lock(client_.mu_);
    ++client_.running_;
    lost_ = client_.lost_;
    follows_[2].cancellation = lost_.get();
  }
  /// The client may be gone when this returns.
  ~Running() override {
    MutexLock lock(client_.mu_);
    if (--client_.running_ == 0) client_.idle_.NotifyAll();
  }

  grpc::ClientContext& context() { return context_; }

  /// False when the call is not to be made: then it has ended.
  bool Follow() {
    for (Followed& f : follows_) {
      if (f.cancellation == nullptr) continue;
      f.token = f.cancellation->Register([this](const Status&) { context_.TryCancel(); });
      if (f.token != Cancellation::kAlreadyCancelled) continue;
      Finish(ToGrpc(f.cancellation->status()));
      return false;
    }
    return true;
  }

  void Start(std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader) {
    reader_ = std::move(reader);
    reader_->StartCall();
    reader_->Finish(&response_, &status_, tag());
  }

  void Complete(bool) override {
    if (status_.error_code() == grpc::StatusCode::CANCELLED) {
      // The reason of the end is a better answer than that the call was ended.
      if (lost_->cancelled()) return Finish(ToGrpc(lost_->status()));
      // The word is gRPC's own: a server that shuts down ends its calls with it.
      if (!IsCancelledHere() && status_.error_message() == "CANCELLED") {
        return Finish({grpc::StatusCode::UNAVAILABLE, "the server has ended the call"});
      }
    }
    Finish(status_);
  }

 private:
  struct Followed {
    Cancellation* cancellation;
    Cancellation::Token token = Cancellation::kAlreadyCancelled;
  };

  bool IsCancelledHere() const {
    return std::any_of(std::begin(follows_), std::end(follows_), [](const Followed& f) {
      return f.cancellation != nullptr && f.cancellation->cancelled();
    });
  }

  void Finish(const grpc::Status& status) {
    const std::unique_ptr<Running> owned(this);
    for (const Followed& f : follows_) {
      if (f.token != Cancellation::kAlreadyCancelled) f.cancellation->Deregister(f.token);
    }
    end_(status, &response_);
  }

  RpcClient& client_;
  std::shared_ptr<Cancellation> lost_;
  Followed follows_[3];
  const End end_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader_;
  grpc::ByteBuffer response_;
  grpc::Status status_;
};

void RpcClient::FailRunning(const Status& why) {
  std::shared_ptr<Cancellation> lost;
  {
    MutexLock lock(mu_);
    lost = std::exchange(lost_, std::make_shared<Cancellation>());
  }
  lost->Cancel(why);
}

void RpcClient::Close() {
  closing_.Cancel(Cancelled("this task is shutting down"));
  MutexLock lock(mu_);
  while (running_ > 0) idle_.Wait(mu_);
}

void RpcClient::Call(const std::string& method, const grpc::ByteBuffer& request,
                     std::chrono::milliseconds limit, Cancellation* cancellation, End end) {
  auto* call = new Running(*this, cancellation, std::move(end));
  if (!call->Follow()) return;
  AddToken(credentials_, &call->context());
  if (limit.count() > 0) call->context().set_deadline(GrpcDeadline(limit));
  call->Start(stub_.PrepareUnaryCall(&call->context(), method, request, &poller_.queue()));
}

}  // namespace tenon
