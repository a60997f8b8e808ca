// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/cluster_service.h"

#include "distributed/grpc/channel.h"
#include "distributed/grpc/reactor.h"
#include "distributed/server.h"
#include "proto/cluster_service.grpc.pb.h"

namespace tenon {
namespace {

constexpr std::chrono::seconds kDeadline{5};
constexpr std::string_view kScheme = "grpc://";

class GrpcClusterService final : public cluster::ClusterService::CallbackService {
 public:
  explicit GrpcClusterService(ClusterServiceParts parts)
      : parts_(std::move(parts)), started_(std::chrono::steady_clock::now()) {}

  grpc::ServerUnaryReactor* TaskEnded(grpc::CallbackServerContext*,
                                      const cluster::TaskEndedRequest* request,
                                      cluster::TaskEndedResponse*) override {
    auto* call = new CallReactor<NoState>;
    call->End(parts_.job_end.Report(request->job(), request->task(), request->failed(),
                                    request->message()));
    return call;
  }
  grpc::ServerUnaryReactor* Shutdown(grpc::CallbackServerContext*,
                                     const cluster::ShutdownRequest*,
                                     cluster::ShutdownResponse*) override {
    auto* call = new CallReactor<NoState>;
    call->End(OkStatus());
    parts_.shutdown();
    return call;
  }
  grpc::ServerUnaryReactor* ServerStatus(grpc::CallbackServerContext*,
                                         const cluster::ServerStatusRequest*,
                                         cluster::ServerStatusResponse* response) override {
    auto* call = new CallReactor<NoState>;
    response->set_task(parts_.task);
    response->set_uptime_seconds(std::chrono::duration_cast<std::chrono::seconds>(
                                     std::chrono::steady_clock::now() - started_)
                                     .count());
    response->set_sessions(parts_.master.num_sessions());
    for (const std::string& t : parts_.job_end.Ended()) response->add_ended_tasks(t);
    call->End(OkStatus());
    return call;
  }

 private:
  const ClusterServiceParts parts_;
  const std::chrono::steady_clock::time_point started_;
};

std::unique_ptr<cluster::ClusterService::Stub> Connect(const std::string& address,
                                                       grpc::ClientContext* context) {
  context->set_deadline(std::chrono::system_clock::now() + kDeadline);
  return cluster::ClusterService::NewStub(OpenChannel(address));
}

StatusOr<std::string> AddressOf(const std::string& target) {
  if (!target.starts_with(kScheme)) {
    return InvalidArgument("'", target, "' is not a target; wanted grpc://host:port");
  }
  return target.substr(kScheme.size());
}

}  // namespace

std::unique_ptr<grpc::Service> MakeClusterService(ClusterServiceParts parts) {
  return std::make_unique<GrpcClusterService>(std::move(parts));
}

void SendTaskEnded(const std::string& address, const std::string& job, int task,
                   const Status& status) {
  grpc::ClientContext context;
  const auto stub = Connect(address, &context);
  cluster::TaskEndedRequest request;
  cluster::TaskEndedResponse response;
  request.set_job(job);
  request.set_task(task);
  request.set_failed(!status.ok());
  request.set_message(std::string(Message(status)));
  // A server that does not answer has ended, or will find out by its own time limit.
  (void)stub->TaskEnded(&context, request, &response);
}

Status StopServer(const std::string& target, const std::string& reason) {
  TENON_ASSIGN_OR_RETURN(const std::string address, AddressOf(target));
  grpc::ClientContext context;
  const auto stub = Connect(address, &context);
  cluster::ShutdownRequest request;
  cluster::ShutdownResponse response;
  request.set_reason(reason);
  return FromGrpc(stub->Shutdown(&context, request, &response));
}

StatusOr<std::string> DescribeServer(const std::string& target) {
  TENON_ASSIGN_OR_RETURN(const std::string address, AddressOf(target));
  grpc::ClientContext context;
  const auto stub = Connect(address, &context);
  cluster::ServerStatusResponse response;
  TENON_RETURN_IF_ERROR(
      FromGrpc(stub->ServerStatus(&context, cluster::ServerStatusRequest(), &response)));
  return StrCat(response.task(), ", up for ", response.uptime_seconds(), " s, ",
                response.sessions(), " sessions; ended tasks: ",
                response.ended_tasks().empty() ? "none" : Join(response.ended_tasks(), ", "));
}

}  // namespace tenon
