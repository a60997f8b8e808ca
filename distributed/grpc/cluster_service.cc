// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/cluster_service.h"

#include "distributed/cluster_spec.h"
#include "distributed/grpc/channel.h"
#include "distributed/grpc/status.h"
#include "distributed/server.h"
#include "proto/cluster_service.grpc.pb.h"

namespace tenon {
namespace {

constexpr std::chrono::seconds kDeadline{5};
const std::string kClusterService = "/tenon.cluster.ClusterService/";

std::unique_ptr<cluster::ClusterService::Stub> Connect(
    const std::string& address, grpc::ClientContext* context,
    std::chrono::milliseconds limit = kDeadline) {
  context->set_deadline(std::chrono::system_clock::now() + limit);
  return cluster::ClusterService::NewStub(OpenChannel(address));
}

}  // namespace

void ServeCluster(RpcServer& server, ClusterServiceParts parts) {
  using Done = std::function<void(Status)>;
  const auto started = std::chrono::steady_clock::now();
  server.Handle<cluster::TaskEndedRequest, cluster::TaskEndedResponse>(
      kClusterService + "TaskEnded",
      [parts](const cluster::TaskEndedRequest& request, auto*, Cancellation*, const Done& done) {
        done(parts.job_end.Report(request.job(), request.task(), request.failed(),
                                  request.message()));
      });
  server.Handle<cluster::ShutdownRequest, cluster::ShutdownResponse>(
      kClusterService + "Shutdown",
      [parts](const cluster::ShutdownRequest&, auto*, Cancellation*, const Done& done) {
        done(OkStatus());
        parts.shutdown();
      });
  server.Handle<cluster::ServerStatusRequest, cluster::ServerStatusResponse>(
      kClusterService + "ServerStatus",
      [parts, started](const cluster::ServerStatusRequest&, cluster::ServerStatusResponse* response,
                       Cancellation*, const Done& done) {
        response->set_task(parts.task);
        response->set_uptime_seconds(std::chrono::duration_cast<std::chrono::seconds>(
                                         std::chrono::steady_clock::now() - started)
                                         .count());
        response->set_sessions(parts.master.num_sessions());
        for (const std::string& t : parts.job_end.Ended()) response->add_ended_tasks(t);
        done(OkStatus());
      });
}

void SendTaskEnded(const std::string& address, const std::string& job, int task,
                   const Status& status, bool may_still_start, std::chrono::milliseconds limit) {
  grpc::ClientContext context;
  context.set_wait_for_ready(may_still_start);
  const auto stub = Connect(address, &context, limit);
  cluster::TaskEndedRequest request;
  cluster::TaskEndedResponse response;
  request.set_job(job);
  request.set_task(task);
  request.set_failed(!status.ok());
  request.set_message(std::string(Message(status)));
  // A server that does not answer has ended, or never started.
  (void)stub->TaskEnded(&context, request, &response);
}

Status StopServer(const std::string& target, const std::string& reason) {
  TENON_ASSIGN_OR_RETURN(const std::string address, AddressOfTarget(target));
  grpc::ClientContext context;
  const auto stub = Connect(address, &context);
  cluster::ShutdownRequest request;
  cluster::ShutdownResponse response;
  request.set_reason(reason);
  return FromGrpc(stub->Shutdown(&context, request, &response));
}

StatusOr<std::string> DescribeServer(const std::string& target) {
  TENON_ASSIGN_OR_RETURN(const std::string address, AddressOfTarget(target));
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
