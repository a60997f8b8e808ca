// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/worker_service.h"

#include <grpcpp/support/proto_buffer_reader.h>

#include "core/proto_io_tensor.h"
#include "distributed/grpc/reactor.h"
#include "distributed/grpc/tensor_coding.h"
#include "proto/worker_service.grpc.pb.h"

namespace tenon {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

/// RecvTensor alone is taken as bytes, so that tensors are not copied into messages.
using Base = tensorflow::WorkerService::WithRawCallbackMethod_RecvTensor<
    tensorflow::WorkerService::CallbackService>;

class GrpcWorkerService final : public Base {
 public:
  explicit GrpcWorkerService(WorkerInterface& worker) : worker_(worker) {}

  ServerUnaryReactor* GetStatus(CallbackServerContext*, const GetStatusRequest* request,
                                GetStatusResponse* response) override {
    auto* call = new CallReactor<NoState>;
    worker_.GetStatusAsync(*request, response, [call](Status s) { call->End(s); });
    return call;
  }
  ServerUnaryReactor* CreateWorkerSession(CallbackServerContext*,
                                          const CreateWorkerSessionRequest* request,
                                          CreateWorkerSessionResponse* response) override {
    auto* call = new CallReactor<NoState>;
    worker_.CreateWorkerSessionAsync(*request, response, [call](Status s) { call->End(s); });
    return call;
  }
  ServerUnaryReactor* DeleteWorkerSession(CallbackServerContext*,
                                          const DeleteWorkerSessionRequest* request,
                                          DeleteWorkerSessionResponse* response) override {
    auto* call = new CallReactor<NoState>;
    worker_.DeleteWorkerSessionAsync(*request, response, [call](Status s) { call->End(s); });
    return call;
  }
  ServerUnaryReactor* RegisterGraph(CallbackServerContext*, const RegisterGraphRequest* request,
                                    RegisterGraphResponse* response) override {
    auto* call = new CallReactor<NoState>;
    worker_.RegisterGraphAsync(*request, response, [call](Status s) { call->End(s); });
    return call;
  }
  ServerUnaryReactor* DeregisterGraph(CallbackServerContext*,
                                      const DeregisterGraphRequest* request,
                                      DeregisterGraphResponse* response) override {
    auto* call = new CallReactor<NoState>;
    worker_.DeregisterGraphAsync(*request, response, [call](Status s) { call->End(s); });
    return call;
  }
  ServerUnaryReactor* CleanupGraph(CallbackServerContext*, const CleanupGraphRequest* request,
                                   CleanupGraphResponse* response) override {
    auto* call = new CallReactor<NoState>;
    worker_.CleanupGraphAsync(*request, response, [call](Status s) { call->End(s); });
    return call;
  }
  ServerUnaryReactor* CleanupAll(CallbackServerContext*, const CleanupAllRequest* request,
                                 CleanupAllResponse* response) override {
    auto* call = new CallReactor<NoState>;
    worker_.CleanupAllAsync(*request, response, [call](Status s) { call->End(s); });
    return call;
  }
  ServerUnaryReactor* Logging(CallbackServerContext*, const LoggingRequest* request,
                              LoggingResponse* response) override {
    auto* call = new CallReactor<NoState>;
    worker_.LoggingAsync(*request, response, [call](Status s) { call->End(s); });
    return call;
  }

  ServerUnaryReactor* RunGraph(CallbackServerContext*, const RunGraphRequest* request,
                               RunGraphResponse* response) override {
    auto* call = new CallReactor<RunGraphCall>;
    RunGraphCall& run = call->state;
    run.session_handle = request->session_handle();
    run.graph_handle = request->graph_handle();
    run.step_id = request->step_id();
    run.record_timeline = request->exec_opts().record_timeline();
    run.recv_keys = {request->recv_key().begin(), request->recv_key().end()};
    const bool in_body = request->store_errors_in_response_body();
    for (const NamedTensorProto& t : request->send()) {
      auto tensor = TensorFromProto(t.tensor());
      if (!tensor.ok()) {
        call->End(Annotate(tensor.status(), t.name()));
        return call;
      }
      run.send.emplace_back(t.name(), *std::move(tensor));
    }
    worker_.RunGraphAsync(&run, &call->cancellation, [call, response, in_body](Status s) {
      RunGraphCall& done = call->state;
      for (size_t i = 0; i < done.received.size() && s.ok(); ++i) {
        NamedTensorProto* named = response->add_recv();
        named->set_name(done.recv_keys[i]);
        s = TensorToProto(done.received[i], named->mutable_tensor());
      }
      if (done.record_timeline) *response->mutable_step_stats() = std::move(done.step_stats);
      if (!s.ok() && in_body) {
        response->set_status_code(static_cast<error::Code>(s.code()));
        response->set_status_error_message(std::string(Message(s)));
        s = OkStatus();
      }
      call->End(s);
    });
    return call;
  }

  ServerUnaryReactor* RecvTensor(CallbackServerContext*, const grpc::ByteBuffer* bytes,
                                 grpc::ByteBuffer* response) override {
    auto* call = new CallReactor<RecvTensorCall>;
    RecvTensorRequest request;
    grpc::ByteBuffer copy(*bytes);  // shares the slices
    grpc::ProtoBufferReader reader(&copy);
    if (!request.ParseFromZeroCopyStream(&reader)) {
      call->End(InvalidArgument("the RecvTensorRequest cannot be read"));
      return call;
    }
    call->state.step_id = request.step_id();
    call->state.key = std::move(*request.mutable_rendezvous_key());
    worker_.RecvTensorAsync(&call->state, &call->cancellation, [call, response](Status s) {
      if (s.ok()) {
        auto encoded = EncodeTensorResponse(call->state.tensor, call->state.is_dead);
        s = encoded.status();
        if (s.ok()) *response = *std::move(encoded);
      }
      call->End(s);
    });
    return call;
  }

 private:
  WorkerInterface& worker_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeWorkerService(WorkerInterface& worker) {
  return std::make_unique<GrpcWorkerService>(worker);
}

}  // namespace tenon
