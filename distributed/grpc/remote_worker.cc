// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/remote_worker.h"

#include <grpcpp/generic/generic_stub.h>

#include "core/device_name.h"
#include "core/proto_io_tensor.h"
#include "distributed/grpc/channel.h"
#include "distributed/grpc/status.h"
#include "distributed/grpc/tensor_coding.h"
#include "proto/worker_service.grpc.pb.h"

namespace tenon {
namespace {

/// How long a worker may take to forget a session or a step, and to prepare a session or a graph.
constexpr std::chrono::seconds kCleanupDeadline{10};
constexpr std::chrono::seconds kPrepareDeadline{60};

/// How long one attempt to find out who a task is may take.
constexpr std::chrono::seconds kStatusDeadline{5};

/// The parts of one call that must live until its end.
struct CallState {
  grpc::ClientContext context;
  WorkerInterface::Done done;
  Cancellation* cancellation = nullptr;
  Cancellation::Token token = Cancellation::kAlreadyCancelled;

  /// Ends the call when `c` is cancelled. False when it is already.
  bool Follow(Cancellation* c) {
    if (c == nullptr) return true;
    cancellation = c;
    token = c->Register([this](const Status&) { context.TryCancel(); });
    return token != Cancellation::kAlreadyCancelled;
  }
  void Unfollow() {
    if (token != Cancellation::kAlreadyCancelled) cancellation->Deregister(token);
  }
};

class RemoteWorker final : public WorkerInterface {
 public:
  RemoteWorker(std::string task, std::string address)
      : task_(std::move(task)),
        address_(std::move(address)),
        channel_(OpenChannel(address_)),
        stub_(tensorflow::WorkerService::NewStub(channel_)),
        generic_stub_(channel_) {}

  void GetStatusAsync(const GetStatusRequest& request, GetStatusResponse* response,
                      Done done) override {
    CallState* call = NewCall(std::move(done), kStatusDeadline);
    stub_->async()->GetStatus(&call->context, &request, response, Ender(call));
  }
  void CreateWorkerSessionAsync(const CreateWorkerSessionRequest& request,
                                CreateWorkerSessionResponse* response, Done done) override {
    CallState* call = NewCall(std::move(done), kPrepareDeadline);
    stub_->async()->CreateWorkerSession(&call->context, &request, response, Ender(call));
  }
  void DeleteWorkerSessionAsync(const DeleteWorkerSessionRequest& request,
                                DeleteWorkerSessionResponse* response, Done done) override {
    CallState* call = NewCall(std::move(done), kCleanupDeadline);
    stub_->async()->DeleteWorkerSession(&call->context, &request, response, Ender(call));
  }
  void RegisterGraphAsync(const RegisterGraphRequest& request, RegisterGraphResponse* response,
                          Done done) override {
    CallState* call = NewCall(std::move(done), kPrepareDeadline);
    stub_->async()->RegisterGraph(&call->context, &request, response, Ender(call));
  }
  void DeregisterGraphAsync(const DeregisterGraphRequest& request,
                            DeregisterGraphResponse* response, Done done) override {
    CallState* call = NewCall(std::move(done), kCleanupDeadline);
    stub_->async()->DeregisterGraph(&call->context, &request, response, Ender(call));
  }
  void CleanupGraphAsync(const CleanupGraphRequest& request, CleanupGraphResponse* response,
                         Done done) override {
    CallState* call = NewCall(std::move(done), kCleanupDeadline);
    stub_->async()->CleanupGraph(&call->context, &request, response, Ender(call));
  }
  void CleanupAllAsync(const CleanupAllRequest& request, CleanupAllResponse* response,
                       Done done) override {
    CallState* call = NewCall(std::move(done), kCleanupDeadline);
    stub_->async()->CleanupAll(&call->context, &request, response, Ender(call));
  }
  void LoggingAsync(const LoggingRequest& request, LoggingResponse* response,
                    Done done) override {
    CallState* call = NewCall(std::move(done), kCleanupDeadline);
    stub_->async()->Logging(&call->context, &request, response, Ender(call));
  }

  void RunGraphAsync(RunGraphCall* call, Cancellation* cancellation, Done done) override {
    struct RunState : CallState {
      RunGraphRequest request;
      RunGraphResponse response;
    };
    auto* state = new RunState;
    state->done = std::move(done);
    RunGraphRequest& request = state->request;
    request.set_session_handle(call->session_handle);
    request.set_create_worker_session_called(true);
    request.set_graph_handle(call->graph_handle);
    request.set_step_id(call->step_id);
    request.set_store_errors_in_response_body(true);
    request.mutable_exec_opts()->set_record_timeline(call->record_timeline);
    for (const auto& [key, tensor] : call->send) {
      NamedTensorProto* named = request.add_send();
      named->set_name(key);
      if (Status s = TensorToProto(tensor, named->mutable_tensor()); !s.ok()) {
        return Abandon(state, s);
      }
    }
    for (const std::string& key : call->recv_keys) request.add_recv_key(key);
    if (!state->Follow(cancellation)) return Abandon(state, cancellation->status());
    stub_->async()->RunGraph(&state->context, &state->request, &state->response,
                             [this, state, call](const grpc::Status& s) {
                               state->Unfollow();
                               Status status = Named(s);
                               if (status.ok()) status = ReadRunGraph(state->response, call);
                               const std::unique_ptr<RunState> owned(state);
                               owned->done(std::move(status));
                             });
  }

  void RecvTensorAsync(RecvTensorCall* call, Cancellation* cancellation, Done done) override {
    struct RecvState : CallState {
      grpc::ByteBuffer request;
      grpc::ByteBuffer response;
    };
    auto* state = new RecvState;
    state->done = std::move(done);
    RecvTensorRequest request;
    request.set_step_id(call->step_id);
    request.set_rendezvous_key(call->key);
    const grpc::Slice slice(request.SerializeAsString());
    state->request = grpc::ByteBuffer(&slice, 1);
    if (!state->Follow(cancellation)) return Abandon(state, cancellation->status());
    static const std::string kMethod = "/tensorflow.WorkerService/RecvTensor";
    generic_stub_.UnaryCall(
        &state->context, kMethod, grpc::StubOptions(), &state->request, &state->response,
        [this, state, call](const grpc::Status& s) {
          state->Unfollow();
          Status status = Named(s);
          if (status.ok()) {
            status = DecodeTensorResponse(&state->response, &call->tensor, &call->is_dead);
          }
          const std::unique_ptr<RecvState> owned(state);
          owned->done(std::move(status));
        });
  }

 private:
  static CallState* NewCall(Done done, std::chrono::seconds limit) {
    auto* call = new CallState;
    call->done = std::move(done);
    call->context.set_deadline(std::chrono::system_clock::now() + limit);
    return call;
  }

  std::function<void(grpc::Status)> Ender(CallState* call) {
    return [this, call](const grpc::Status& s) { End(call, s); };
  }

  void End(CallState* call, const grpc::Status& s) {
    const std::unique_ptr<CallState> owned(call);
    // A task that hangs is as unreachable as one that is not there.
    const bool late = s.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
    owned->done(Named(late ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "no answer in time") : s));
  }

  template <typename State>
  static void Abandon(State* state, const Status& status) {
    const std::unique_ptr<State> owned(state);
    owned->Unfollow();
    owned->done(status);
  }

  /// A failure of the connection names the task; the worker's own errors pass as they are.
  Status Named(const grpc::Status& s) const {
    if (s.error_code() != grpc::StatusCode::UNAVAILABLE) return FromGrpc(s);
    return Unavailable("task ", task_, " at ", address_, " is unavailable: ", s.error_message());
  }

  static Status ReadRunGraph(const RunGraphResponse& response, RunGraphCall* call) {
    call->step_stats = response.step_stats();
    if (response.status_code() != 0) {
      return Status(static_cast<StatusCode>(response.status_code()),
                    response.status_error_message());
    }
    flat_hash_map<std::string, const TensorProto*> by_key;
    for (const NamedTensorProto& t : response.recv()) by_key[t.name()] = &t.tensor();
    for (const std::string& key : call->recv_keys) {
      const auto found = by_key.find(key);
      if (found == by_key.end()) return Internal("the worker's answer lacks '", key, "'");
      TENON_ASSIGN_OR_RETURN(Tensor tensor, TensorFromProto(*found->second));
      call->received.push_back(std::move(tensor));
    }
    return OkStatus();
  }

  const std::string task_;
  const std::string address_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<tensorflow::WorkerService::Stub> stub_;
  grpc::GenericStub generic_stub_;
};

}  // namespace

void GrpcWorkerDirectory::SetLocal(const std::string& task,
                                   std::shared_ptr<WorkerInterface> worker) {
  MutexLock lock(mu_);
  workers_[task] = std::move(worker);
}

StatusOr<std::shared_ptr<WorkerInterface>> GrpcWorkerDirectory::Get(const std::string& task) {
  MutexLock lock(mu_);
  std::shared_ptr<WorkerInterface>& worker = workers_[task];
  if (worker != nullptr) return worker;
  TENON_ASSIGN_OR_RETURN(const DeviceName name, DeviceName::Parse(task));
  TENON_ASSIGN_OR_RETURN(std::string address,
                         cluster_.Address(name.job.value_or(""), name.task.value_or(0)));
  worker = std::make_shared<RemoteWorker>(task, std::move(address));
  return worker;
}

std::string GrpcWorkerDirectory::Address(const std::string& task) const {
  const auto name = DeviceName::Parse(task);
  if (!name.ok()) return "?";
  const auto address = cluster_.Address(name->job.value_or(""), name->task.value_or(0));
  return address.ok() ? *address : "?";
}

}  // namespace tenon
