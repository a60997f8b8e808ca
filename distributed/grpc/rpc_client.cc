// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/rpc_client.h"

#include "distributed/grpc/status.h"

namespace tenon {

/// One call on its way. Deletes itself.
class RpcClient::Running final : public Completion {
 public:
  Running(Cancellation* own, Cancellation* closing, End end)
      : follows_{{own}, {closing}}, end_(std::move(end)) {}

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

  void Complete(bool) override { Finish(status_); }

 private:
  struct Followed {
    Cancellation* cancellation;
    Cancellation::Token token = Cancellation::kAlreadyCancelled;
  };

  void Finish(const grpc::Status& status) {
    const std::unique_ptr<Running> owned(this);
    for (const Followed& f : follows_) {
      if (f.token != Cancellation::kAlreadyCancelled) f.cancellation->Deregister(f.token);
    }
    end_(status, &response_);
  }

  Followed follows_[2];
  const End end_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader_;
  grpc::ByteBuffer response_;
  grpc::Status status_;
};

void RpcClient::Call(const std::string& method, const grpc::ByteBuffer& request,
                     std::chrono::milliseconds limit, Cancellation* cancellation, End end) {
  auto* call = new Running(cancellation, &closing_, std::move(end));
  if (!call->Follow()) return;
  if (limit.count() > 0) call->context().set_deadline(std::chrono::system_clock::now() + limit);
  call->Start(stub_.PrepareUnaryCall(&call->context(), method, request, &poller_.queue()));
}

}  // namespace tenon
