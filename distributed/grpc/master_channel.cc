// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/master_channel.h"

#include <future>

#include "core/base/exceptions.h"
#include "core/proto/proto_io_tensor.h"
#include "distributed/grpc/peer/peer_calls.h"
#include "distributed/grpc/rpc/channel.h"
#include "distributed/grpc/rpc/deadline.h"
#include "distributed/grpc/rpc/message_bytes.h"
#include "distributed/grpc/rpc/rpc_client.h"
#include "distributed/grpc/rpc/security.h"
#include "distributed/grpc/rpc/status.h"
#include "distributed/grpc/rpc/tensor_coding.h"
#include "distributed/protocol/run_settings.h"
#include "proto/cluster_service.grpc.pb.h"
#include "proto/master_service.grpc.pb.h"

namespace tenon {
namespace {

constexpr std::chrono::seconds kProbeDeadline{5};

class GrpcMasterChannel final : public MasterChannel {
 public:
  GrpcMasterChannel(const std::string& address, Credentials credentials)
      : address_(address), credentials_(std::move(credentials)) {}
  ~GrpcMasterChannel() override {
    if (stream_ != nullptr) stream_->Disconnect();
    if (client_ != nullptr) client_->Close();
  }

  Status CreateSession(const CreateSessionRequest& request,
                       CreateSessionResponse* response) override {
    TENON_RETURN_IF_ERROR(Connect());
    grpc::ClientContext context;
    AddToken(credentials_, &context);
    return Named(stub_->CreateSession(&context, request, response));
  }
  Status ExtendSession(const ExtendSessionRequest& request,
                       ExtendSessionResponse* response) override {
    grpc::ClientContext context;
    AddToken(credentials_, &context);
    return Named(stub_->ExtendSession(&context, request, response));
  }
  Status CloseSession(const CloseSessionRequest& request) override {
    grpc::ClientContext context;
    AddToken(credentials_, &context);
    CloseSessionResponse response;
    return Named(stub_->CloseSession(&context, request, &response));
  }

  Status RunStep(ClientCall* call) override {
    RunStepRequest request;
    TENON_RETURN_IF_ERROR(WriteRequest(*call, &request));
    RunStepResponse response;
    std::promise<Status> ended;
    StartStep(request, &response, [&ended](Status s) { ended.set_value(std::move(s)); });
    TENON_RETURN_IF_ERROR(ended.get_future().get());
    return ReadResponse(&response, call);
  }

  void RunStepAsync(ClientCall* call, std::function<void(Status)> done) override {
    RunStepRequest request;
    if (Status s = WriteRequest(*call, &request); !s.ok()) return done(std::move(s));
    auto response = std::make_shared<RunStepResponse>();
    StartStep(request, response.get(), [call, response, done = std::move(done)](Status s) {
      if (s.ok()) s = CatchExceptions([&] { return ReadResponse(response.get(), call); });
      done(std::move(s));
    });
  }

 private:
  /// Finds out, with the first call, whether the server is Tenon's and bears to be asked often
  /// whether it lives: a dead or stalled one is noticed within 40 s then, and within 330 s
  /// otherwise.
  Status Connect() {
    auto channel = OpenChannel(address_, credentials_, Keepalive::kFrequent);
    grpc::ClientContext context;
    AddToken(credentials_, &context);
    context.set_deadline(GrpcDeadline(kProbeDeadline));
    cluster::ServerStatusResponse response;
    const grpc::Status status = cluster::ClusterService::NewStub(channel)->ServerStatus(
        &context, cluster::ServerStatusRequest(), &response);
    if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
      channel = OpenChannel(address_, credentials_, Keepalive::kRare);
    } else if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED) {
      return Status(StatusCode::kUnauthenticated,
                    StrCat("the server at ", address_, " refuses: ", status.error_message()));
    } else if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
      return Unavailable(Message(ConnectionError(status, address_, credentials_)));
    } else if (!status.ok()) {
      return ConnectionError(status, address_, credentials_);
    } else if (stream_ == nullptr) {
      stream_ = std::make_unique<PeerCalls>(
          address_, credentials_, poller_, [this](const grpc::Status& s) { return Named(s); },
          [](const Status&) {});
    }
    stub_ = tensorflow::MasterService::NewStub(channel);
    client_ = std::make_unique<RpcClient>(channel, credentials_, poller_);
    return OkStatus();
  }

  static Status WriteRequest(const ClientCall& call, RunStepRequest* request) {
    request->set_session_handle(call.session_handle);
    request->set_store_errors_in_response_body(true);
    size_t num_bytes = 0;
    for (const auto& [name, tensor] : call.feeds) num_bytes += tensor.num_bytes();
    TENON_RETURN_IF_ERROR(CheckFitsMessage(num_bytes));
    for (const auto& [name, tensor] : call.feeds) {
      NamedTensorProto* feed = request->add_feed();
      feed->set_name(name);
      TENON_RETURN_IF_ERROR(TensorToProto(tensor, feed->mutable_tensor()));
    }
    for (const std::string& name : call.fetches) request->add_fetch(name);
    for (const std::string& name : call.targets) request->add_target(name);
    request->mutable_options()->set_timeout_in_ms(call.timeout_ms);
    WriteRunSettings(call.settings, request->mutable_options());
    return OkStatus();
  }

  /// Over the stream of a server of Tenon's as soon as it is open, or else in a call of its own.
  void StartStep(RunStepRequest& request, RunStepResponse* response, WorkerInterface::Done done) {
    if (stream_ != nullptr && stream_->RunStep(request, response, done)) return;
    grpc::ByteBuffer message;
    if (!WriteMessage(request, &message)) {
      return done(ResourceExhausted("the feeds of a step are larger than a message can be: ",
                                    request.ByteSizeLong(), " bytes"));
    }
    client_->Call("/tensorflow.MasterService/RunStep", message, std::chrono::milliseconds(0),
                  nullptr, [this, response, done](const grpc::Status& s, grpc::ByteBuffer* bytes) {
                    if (!s.ok()) return done(Named(s));
                    done(ReadMessage(bytes, response)
                             ? OkStatus()
                             : Internal("the answer of the server at ", address_,
                                        " to RunStep cannot be read"));
                  });
  }

  static Status ReadResponse(RunStepResponse* response, ClientCall* call) {
    if (response->status_code() != 0) {
      return Status(static_cast<StatusCode>(response->status_code()),
                    response->status_error_message());
    }
    call->metadata = std::move(*response->mutable_metadata());
    return ReadFetched(*response, call);
  }

  static Status ReadFetched(const RunStepResponse& response, ClientCall* call) {
    StringViewMap<const TensorProto*> by_name;
    for (const NamedTensorProto& t : response.tensor()) by_name[t.name()] = &t.tensor();
    call->fetched.clear();
    for (const std::string& name : call->fetches) {
      const auto found = by_name.find(name);
      if (found == by_name.end()) return Internal("the server's answer lacks '", name, "'");
      TENON_ASSIGN_OR_RETURN(Tensor tensor, TensorFromProto(*found->second));
      call->fetched.push_back(std::move(tensor));
    }
    return OkStatus();
  }

  Status Named(const grpc::Status& s) const {
    // These calls have no deadline of their own: one that is exceeded is a step's.
    return s.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED
               ? FromGrpc(s)
               : ConnectionError(s, address_, credentials_);
  }

  const std::string address_;
  const Credentials credentials_;
  ThreadPool pool_{1};
  Poller poller_{std::make_unique<grpc::CompletionQueue>(), pool_, MachineClock()};
  // From CreateSession on:
  std::unique_ptr<tensorflow::MasterService::Stub> stub_;
  std::unique_ptr<RpcClient> client_;
  std::unique_ptr<PeerCalls> stream_;  // null with servers that are not Tenon's
};

}  // namespace

std::unique_ptr<MasterChannel> MakeGrpcChannel(const std::string& address,
                                               const Credentials& credentials) {
  return std::make_unique<GrpcMasterChannel>(address, credentials);
}

}  // namespace tenon
