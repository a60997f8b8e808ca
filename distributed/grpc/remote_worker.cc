// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/remote_worker.h"

#include <atomic>

#include "core/device/device_name.h"
#include "distributed/grpc/peer/peer_calls.h"
#include "distributed/grpc/rpc/channel.h"
#include "distributed/grpc/rpc/message_bytes.h"
#include "distributed/grpc/rpc/rpc_client.h"
#include "distributed/grpc/rpc/run_graph_coding.h"
#include "distributed/grpc/rpc/status.h"
#include "distributed/grpc/rpc/tensor_coding.h"

namespace tenon {
namespace {

/// How long a worker may take to forget a session or a step, and to prepare a session or a graph.
constexpr std::chrono::seconds kCleanupDeadline{10};
constexpr std::chrono::seconds kPrepareDeadline{60};

/// How long one attempt to find out who a task is may take.
constexpr std::chrono::seconds kStatusDeadline{5};

/// Steps take as long as they take.
constexpr std::chrono::seconds kNoDeadline{0};

const std::string kWorkerPath = "/tensorflow.WorkerService/";

}  // namespace

class RemoteWorker final : public WorkerInterface {
 public:
  RemoteWorker(std::string task, std::string address, const Credentials& credentials,
               Poller& poller)
      : task_(std::move(task)),
        address_(std::move(address)),
        has_tls_(credentials.has_tls()),
        client_(OpenChannel(address_, credentials), credentials, poller),
        peer_(
            address_, credentials, poller, [this](const grpc::Status& s) { return Named(s); },
            [this](const Status& why) { client_.FailRunning(why); }) {}

  /// Whether the task has answered a call.
  bool answered() const { return answered_; }
  const std::shared_ptr<grpc::Channel>& channel() const { return client_.channel(); }

  /// Ends what runs; later calls fail. Blocks.
  void Disconnect() {
    peer_.Disconnect();
    client_.Close();
  }

  void GetStatusAsync(const GetStatusRequest& request, GetStatusResponse* response,
                      Done done) override {
    // A caller that asks again has waited for as long as seemed good to it.
    client_.ConnectSoon();
    Call("GetStatus", request, response, kStatusDeadline, nullptr, std::move(done));
  }
  void CreateWorkerSessionAsync(const CreateWorkerSessionRequest& request,
                                CreateWorkerSessionResponse* response, Done done) override {
    Call("CreateWorkerSession", request, response, kPrepareDeadline, nullptr, std::move(done));
  }
  void DeleteWorkerSessionAsync(const DeleteWorkerSessionRequest& request,
                                DeleteWorkerSessionResponse* response, Done done) override {
    Call("DeleteWorkerSession", request, response, kCleanupDeadline, nullptr, std::move(done));
  }
  void RegisterGraphAsync(const RegisterGraphRequest& request, RegisterGraphResponse* response,
                          Done done) override {
    Call("RegisterGraph", request, response, kPrepareDeadline, nullptr, std::move(done));
  }
  void DeregisterGraphAsync(const DeregisterGraphRequest& request,
                            DeregisterGraphResponse* response, Done done) override {
    Call("DeregisterGraph", request, response, kCleanupDeadline, nullptr, std::move(done));
  }
  void CleanupGraphAsync(const CleanupGraphRequest& request, CleanupGraphResponse* response,
                         Done done) override {
    if (peer_.CleanupGraph(request)) return done(OkStatus());
    Call("CleanupGraph", request, response, kCleanupDeadline, nullptr, std::move(done));
  }
  void CleanupAllAsync(const CleanupAllRequest& request, CleanupAllResponse* response,
                       Done done) override {
    Call("CleanupAll", request, response, kCleanupDeadline, nullptr, std::move(done));
  }
  void CompleteGroupAsync(const CompleteGroupRequest& request, CompleteGroupResponse* response,
                          Cancellation* cancellation, Done done) override {
    Call("CompleteGroup", request, response, kNoDeadline, cancellation, std::move(done));
  }
  void LoggingAsync(const LoggingRequest& request, LoggingResponse* response, Done done) override {
    Call("Logging", request, response, kCleanupDeadline, nullptr, std::move(done));
  }

  void RunGraphAsync(RunGraphCall* call, Cancellation* cancellation, Done done) override {
    if (peer_.RunGraph(call, cancellation, done)) return;
    RunGraphRequest request;
    if (Status s = WriteRunGraphRequest(*call, &request); !s.ok()) return done(s);
    auto response = std::make_shared<RunGraphResponse>();
    Call("RunGraph", request, response.get(), kNoDeadline, cancellation,
         [response, call, done = std::move(done)](const Status& s) {
           done(s.ok() ? ReadRunGraphResponse(*response, call) : s);
         });
  }

  void RecvTensorAsync(RecvTensorCall* call, Cancellation* cancellation, Done done) override {
    if (peer_.RecvTensor(call, cancellation, done)) return;
    RecvTensorRequest request;
    request.set_step_id(call->step_id);
    request.set_rendezvous_key(call->key);
    grpc::ByteBuffer message;
    WriteMessage(request, &message);
    client_.Call(
        kWorkerPath + "RecvTensor", message, kNoDeadline, cancellation,
        [this, call, done = std::move(done)](const grpc::Status& s, grpc::ByteBuffer* bytes) {
          done(s.ok() ? DecodeTensorResponse(bytes, *call->memory, &call->tensor, &call->is_dead)
                      : Named(s));
        });
  }

 private:
  template <typename Request, typename Response>
  void Call(const char* method, const Request& request, Response* response,
            std::chrono::milliseconds limit, Cancellation* cancellation, Done done) {
    grpc::ByteBuffer message;
    if (!WriteMessage(request, &message)) {
      return done(ResourceExhausted("the request ", method, " to task ", task_,
                                    " is larger than a message can be: ", request.ByteSizeLong(),
                                    " bytes"));
    }
    client_.Call(
        kWorkerPath + method, message, limit, cancellation,
        [this, limit, response, done = std::move(done)](grpc::Status s, grpc::ByteBuffer* bytes) {
          if (s.ok() && !ReadMessage(bytes, response)) {
            s = grpc::Status(grpc::StatusCode::INTERNAL, "the answer cannot be read");
          }
          if (s.ok()) answered_ = true;
          // A task that hangs is as unreachable as one that is not there; only who asks
          // whether it lives wants to know the difference.
          if (s.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED && limit != kStatusDeadline) {
            s = grpc::Status(grpc::StatusCode::UNAVAILABLE, "no answer in time");
          }
          done(Named(s));
        });
  }

  /// A failure of the connection names the task; the worker's own errors pass as they are.
  Status Named(const grpc::Status& s) const {
    if (s.error_code() == grpc::StatusCode::UNAUTHENTICATED) {
      return Status(StatusCode::kUnauthenticated, StrCat("task ", task_, " at ", address_,
                                                         " refuses this one: ", s.error_message()));
    }
    // A call that was lost with the task's stream has its name already.
    if (s.error_code() != grpc::StatusCode::UNAVAILABLE || s.error_message().starts_with("task ")) {
      return FromGrpc(s);
    }
    return Unavailable("task ", task_, " at ", address_, " is unavailable: ", s.error_message(),
                       ConnectionHint(s.error_message(), has_tls_));
  }

  const std::string task_;
  const std::string address_;
  const bool has_tls_;
  RpcClient client_;
  PeerCalls peer_;
  std::atomic<bool> answered_{false};
};

GrpcWorkerDirectory::~GrpcWorkerDirectory() {
  for (const auto& [task, worker] : remotes_) worker->Disconnect();
}

bool GrpcWorkerDirectory::HasAnswered(const std::string& task) {
  MutexLock lock(mu_);
  const auto found = remotes_.find(task);
  return found != remotes_.end() && found->second->answered();
}

std::shared_ptr<grpc::Channel> GrpcWorkerDirectory::ConnectedTo(const std::string& task) {
  MutexLock lock(mu_);
  const auto found = remotes_.find(task);
  if (found == remotes_.end()) return nullptr;
  const std::shared_ptr<grpc::Channel>& channel = found->second->channel();
  return channel->GetState(false) == GRPC_CHANNEL_READY ? channel : nullptr;
}

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
  auto remote = std::make_shared<RemoteWorker>(task, std::move(address), credentials_, poller_);
  remotes_[task] = remote;
  worker = std::move(remote);
  return worker;
}

std::string GrpcWorkerDirectory::Address(const std::string& task) const {
  const auto name = DeviceName::Parse(task);
  if (!name.ok()) return "?";
  const auto address = cluster_.Address(name->job.value_or(""), name->task.value_or(0));
  return address.ok() ? *address : "?";
}

}  // namespace tenon
