// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/cluster_service.h"

#include <algorithm>
#include <cstdio>

#include "core/base/plural.h"
#include "distributed/grpc/cluster_stub.h"
#include "distributed/grpc/rpc/status.h"
#include "distributed/protocol/cluster_spec.h"
#include "distributed/protocol/server.h"

namespace tenon {
namespace {

constexpr std::chrono::seconds kDeadline{5};
/// A server asks others for as long as kDeadline before it answers.
constexpr std::chrono::seconds kStatusOfAllDeadline{8};
const std::string kClusterService = "/tenon.cluster.ClusterService/";

std::string Seconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f s", seconds);
  return text;
}

std::string Mebibytes(int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  return text;
}

}  // namespace

void ServeCluster(RpcServer& server, ClusterServiceParts parts) {
  using Done = std::function<void(Status)>;
  server.Handle<cluster::TaskEndedRequest, cluster::TaskEndedResponse>(
      kClusterService + "TaskEnded",
      [parts](const cluster::TaskEndedRequest& request, auto*, Cancellation*, const Done& done) {
        const Status end = request.failed()        ? Internal(request.message())
                           : request.interrupted() ? Cancelled(request.message())
                                                   : OkStatus();
        done(parts.job_end.Report(request.job(), request.task(), end));
      });
  server.Handle<cluster::ShutdownRequest, cluster::ShutdownResponse>(
      kClusterService + "Shutdown",
      [parts](const cluster::ShutdownRequest& request, auto*, Cancellation*, const Done& done) {
        done(OkStatus());
        parts.shutdown(request.reason().empty() ? "it was told to" : request.reason());
      });
  server.Handle<cluster::ServerStatusRequest, cluster::ServerStatusResponse>(
      kClusterService + "ServerStatus",
      [parts](const cluster::ServerStatusRequest& request, cluster::ServerStatusResponse* response,
              Cancellation*, const Done& done) {
        parts.describe(request.ask_tasks(), response, [done] { done(OkStatus()); });
      });
}

Status StopServer(const std::string& target, const std::string& reason,
                  const Credentials& credentials) {
  TENON_ASSIGN_OR_RETURN(const std::string address, AddressOfTarget(target));
  grpc::ClientContext context;
  const auto stub = StubFor(address, credentials, kDeadline, &context);
  cluster::ShutdownRequest request;
  cluster::ShutdownResponse response;
  request.set_reason(reason);
  return ConnectionError(stub->Shutdown(&context, request, &response), address, credentials);
}

StatusOr<std::string> DescribeServer(const std::string& target, const Credentials& credentials) {
  TENON_ASSIGN_OR_RETURN(const std::string address, AddressOfTarget(target));
  grpc::ClientContext context;
  const auto stub = StubFor(address, credentials, kStatusOfAllDeadline, &context);
  cluster::ServerStatusRequest request;
  cluster::ServerStatusResponse response;
  request.set_ask_tasks(true);
  TENON_RETURN_IF_ERROR(
      ConnectionError(stub->ServerStatus(&context, request, &response), address, credentials));
  return ToText(response);
}

std::string ToText(const cluster::ServerStatusResponse& status) {
  std::string out = StrCat(
      status.task(), ", up for ", status.uptime_seconds(), " s, ",
      Plural(status.sessions_size(), "session"),
      "; ended tasks: ", status.ended_tasks().empty() ? "none" : Join(status.ended_tasks(), ", "),
      "\n", "tensors: ", Mebibytes(status.memory_bytes()), "; connections: ", status.connections(),
      "; calls: ", status.calls(), "; steps: ", status.num_steps(),
      "; receives that wait: ", status.num_receives(), "\n");
  for (const std::string& task : status.awaited_tasks()) {
    StrAppend(&out, "has not come yet: ", task, "\n");
  }
  for (const std::string& task : status.silent_tasks()) {
    StrAppend(&out, "no answer from ", task, "\n");
  }
  for (const auto& c : status.containers()) {
    StrAppend(&out, "container ", c.name(), ": ",
              Plural(c.resources(), "variable or other", "variables and others"), ", ",
              Mebibytes(c.bytes()), "\n");
  }
  for (const auto& s : status.sessions()) {
    StrAppend(&out, "session ", s.id(), ": ", Plural(s.nodes(), "node"), ", ",
              Plural(s.signatures(), "signature"), ", ");
    if (s.running_seconds().empty()) {
      StrAppend(&out, "idle for ", Seconds(s.idle_seconds()), "\n");
    } else {
      const double longest =
          *std::max_element(s.running_seconds().begin(), s.running_seconds().end());
      StrAppend(&out, Plural(s.running_seconds_size(), "step runs", "steps run"),
                ", the longest for ", Seconds(longest), "\n");
    }
  }
  for (const auto& s : status.worker_sessions()) {
    StrAppend(&out, "session ", s.id(), " of the master ", s.master(), ": ",
              Plural(s.graphs(), "partition"), ", ", s.running(), " run, ", Mebibytes(s.bytes()),
              "\n");
  }
  for (const auto& s : status.steps()) {
    StrAppend(&out, "step ", s.id(), s.session().empty() ? "" : " of session ", s.session(), ", ",
              Seconds(s.seconds()), "\n");
    for (const std::string& wait : s.waits()) StrAppend(&out, "  ", wait, "\n");
  }
  return out;
}

}  // namespace tenon
