// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/master_service.h"

#include "core/proto_io_tensor.h"
#include "distributed/grpc/reactor.h"
#include "proto/master_service.grpc.pb.h"

namespace tenon {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

Status ReadRequest(const RunStepRequest& request, RunStepCall* call) {
  if (!request.partial_run_handle().empty()) return Unimplemented("partial runs");
  call->session_handle = request.session_handle();
  for (const NamedTensorProto& feed : request.feed()) {
    auto tensor = TensorFromProto(feed.tensor());
    if (!tensor.ok()) return Annotate(tensor.status(), StrCat("feed '", feed.name(), "'"));
    call->feeds.emplace_back(feed.name(), *std::move(tensor));
  }
  call->fetches = {request.fetch().begin(), request.fetch().end()};
  call->targets = {request.target().begin(), request.target().end()};
  call->timeout_ms = request.options().timeout_in_ms();
  call->trace = request.options().trace_level() > RunOptions::NO_TRACE;
  call->output_partition_graphs = request.options().output_partition_graphs();
  call->request_id = request.request_id();
  return OkStatus();
}

Status WriteResponse(RunStepCall* call, RunStepResponse* response) {
  for (size_t i = 0; i < call->fetches.size(); ++i) {
    NamedTensorProto* named = response->add_tensor();
    named->set_name(call->fetches[i]);
    TENON_RETURN_IF_ERROR(TensorToProto(call->fetched[i], named->mutable_tensor()));
  }
  return OkStatus();
}

class GrpcMasterService final : public tensorflow::MasterService::CallbackService {
 public:
  GrpcMasterService(Master& master, BlockingCalls& calls) : master_(master), calls_(calls) {}

  ServerUnaryReactor* CreateSession(CallbackServerContext*, const CreateSessionRequest* request,
                                    CreateSessionResponse* response) override {
    return Blocking([=, this] { return master_.CreateSession(*request, response); });
  }
  ServerUnaryReactor* ExtendSession(CallbackServerContext*, const ExtendSessionRequest* request,
                                    ExtendSessionResponse* response) override {
    return Blocking([=, this] { return master_.ExtendSession(*request, response); });
  }
  ServerUnaryReactor* CloseSession(CallbackServerContext*, const CloseSessionRequest* request,
                                   CloseSessionResponse*) override {
    return Blocking([=, this] { return master_.CloseSession(*request); });
  }
  ServerUnaryReactor* ListDevices(CallbackServerContext*, const ListDevicesRequest* request,
                                  ListDevicesResponse* response) override {
    return Blocking([=, this] { return master_.ListDevices(*request, response); });
  }
  ServerUnaryReactor* Reset(CallbackServerContext*, const ResetRequest* request,
                            ResetResponse*) override {
    return Blocking([=, this] { return master_.Reset(*request); });
  }

  ServerUnaryReactor* RunStep(CallbackServerContext*, const RunStepRequest* request,
                              RunStepResponse* response) override {
    auto* call = new CallReactor<RunStepCall>;
    const bool in_body = request->store_errors_in_response_body();
    const auto done = [call, response, in_body](Status s) {
      if (s.ok()) s = WriteResponse(&call->state, response);
      *response->mutable_metadata() = std::move(call->state.metadata);
      // An error of the step must not look like one of the connection, which clients repeat.
      if (!s.ok() && in_body) {
        response->set_status_code(static_cast<error::Code>(s.code()));
        response->set_status_error_message(std::string(Message(s)));
        s = OkStatus();
      }
      call->End(s);
    };
    if (Status s = ReadRequest(*request, &call->state); !s.ok()) {
      done(s);
      return call;
    }
    const auto run = [this, call, done] {
      master_.RunStepAsync(&call->state, &call->cancellation, done);
    };
    if (master_.RunStepMayBlock(call->state)) {
      calls_.Run(run);
    } else {
      run();
    }
    return call;
  }

 private:
  template <typename Fn>
  ServerUnaryReactor* Blocking(Fn fn) {
    auto* call = new CallReactor<NoState>;
    calls_.Run([call, fn] { call->End(fn()); });
    return call;
  }

  Master& master_;
  BlockingCalls& calls_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeMasterService(Master& master, BlockingCalls& calls) {
  return std::make_unique<GrpcMasterService>(master, calls);
}

}  // namespace tenon
