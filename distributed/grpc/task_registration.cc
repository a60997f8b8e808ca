// SPDX-License-Identifier: Apache-2.0
#include <grpcpp/client_context.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/base/strings.h"
#include "distributed/grpc/own_address.h"
#include "distributed/grpc/registrations.h"
#include "distributed/grpc/rpc/channel.h"
#include "distributed/grpc/rpc/deadline.h"
#include "distributed/grpc/rpc/host_address.h"
#include "distributed/grpc/rpc/rpc_server.h"
#include "distributed/grpc/rpc/security.h"
#include "distributed/grpc/rpc/status.h"
#include "distributed/protocol/limits.h"
#include "distributed/protocol/task_role.h"
#include "distributed/resolver/cluster_resolver.h"
#include "proto/registration_service.grpc.pb.h"
#include "runtime/device/thread_pool.h"

namespace tenon {
namespace {

constexpr std::chrono::milliseconds kCallDeadline{5000}, kRegistrationPause{100};
/// The limit for others to hear that all are there, for whom the serving task waits.
constexpr std::chrono::seconds kLastWord{10};
constexpr std::chrono::milliseconds kGoodbye{500};

/// The port at which the others find this task, and which nobody else gets while this lives.
class OwnPort {
 public:
  ~OwnPort() {
    if (socket_ >= 0) close(socket_);
  }
  OwnPort() = default;
  OwnPort(const OwnPort&) = delete;
  OwnPort& operator=(const OwnPort&) = delete;

  /// A port of the interface by which this machine reaches `peer`.
  Status Take(HostAddress peer) {
    peer.set_port(9);  // nothing is sent: any does
    const int way = socket(peer.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (way < 0) return FromErrno("no socket");
    const bool reaches = connect(way, peer.data(), peer.size()) == 0;
    auto own = NameOf(way);
    close(way);
    if (!reaches) return FromErrno("it cannot be reached");
    TENON_RETURN_IF_ERROR(own.status());
    own->set_port(0);
    socket_ = socket(own->family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket_ < 0 || bind(socket_, own->data(), own->size()) != 0) {
      return FromErrno("no free port");
    }
    TENON_ASSIGN_OR_RETURN(address_, NameOf(socket_));
    return OkStatus();
  }
  bool is_taken() const { return address_.has_value(); }
  const HostAddress& address() const { return *address_; }

 private:
  static Status FromErrno(std::string_view what) {
    return Unavailable(what, ": ", std::strerror(errno));
  }
  static StatusOr<HostAddress> NameOf(int socket) {
    sockaddr_storage at{};
    socklen_t size = sizeof(at);
    auto* const name = reinterpret_cast<sockaddr*>(&at);
    if (getsockname(socket, name, &size) != 0) return FromErrno("no address");
    return HostAddress(name, size);
  }

  int socket_ = -1;
  std::optional<HostAddress> address_;
};

/// The server that the tasks register at.
class RegistrationServer {
 public:
  explicit RegistrationServer(const ServerOptions& options)
      : clock_(*options.clock),
        registrations_(clock_),
        rpc_server_(pool_, clock_, options.limits, options.credentials, options.notice) {
    rpc_server_.Handle<cluster::RegisterTaskRequest, cluster::RegisterTaskResponse>(
        "/tenon.cluster.RegistrationService/RegisterTask",
        [this](const cluster::RegisterTaskRequest& request, cluster::RegisterTaskResponse* response,
               Cancellation*,
               const auto& done) { done(registrations_.Register(request, response)); });
  }
  ~RegistrationServer() {
    const Clock::Time end = clock_.Now() + kLastWord;
    while (completed_ && !registrations_.all_know() && clock_.Now() < end) {
      clock_.SleepFor(kRegistrationPause);
    }
    rpc_server_.Shutdown(kGoodbye);
  }

  Status Listen(const std::string& host, int port) {
    TENON_RETURN_IF_ERROR(rpc_server_.Listen(host, port).status());
    return rpc_server_.Start();
  }
  /// All have come: its end waits until each knows.
  void Complete() { completed_ = true; }

 private:
  Clock& clock_;
  Registrations registrations_;
  ThreadPool pool_{1};
  RpcServer rpc_server_;
  bool completed_ = false;
};

/// One task that registers.
class Registrant {
 public:
  Registrant(const Registration& wanted, const ServerOptions& options)
      : wanted_(wanted),
        options_(options),
        clock_(*options.clock),
        begin_(clock_.Now()),
        next_notice_(begin_ + kNoticePause) {
    request_.set_process(StrCat(options.entropy->Next(), "-", options.entropy->Next()));
    request_.set_num_ps(wanted.num_ps);
    request_.set_num_workers(wanted.num_workers);
    request_.set_job(wanted.job);
    if (wanted.task) request_.set_task(*wanted.task);
  }

  StatusOr<cluster::RegisterTaskResponse> Register() {
    const std::string host = HostOf(wanted_.address);
    while (true) {
      Status tried = FindWay(host);
      if (tried.ok()) {
        if (server_ == nullptr) TryToServe(host);
        cluster::RegisterTaskResponse response;
        tried = Call(&response);
        if (tried.ok() && response.complete()) {
          if (server_ != nullptr) server_->Complete();
          return response;
        }
        if (tried.ok()) {
          registered_ = response.registered();
        } else if (tried.code() == StatusCode::kUnimplemented) {
          return FailedPrecondition("another program answers at ", wanted_.address,
                                    " (--rendezvous): tasks want a port there that is free");
        } else if (!MayPass(tried)) {
          return tried;
        }
      }
      const Clock::Time now = clock_.Now();
      if (now - begin_ >= options_.start_up_deadline) return TooLate(tried);
      if (now >= next_notice_ && options_.notice) {
        options_.notice(StrCat("waiting for the other tasks: ", State(tried)));
        next_notice_ = now + kNoticePause;
      }
      clock_.SleepFor(kRegistrationPause);
    }
  }

 private:
  /// Finds out where this task is, once it can.
  Status FindWay(const std::string& host) {
    if (own_.is_taken()) return OkStatus();
    const auto addresses = ResolveHost(host);
    if (!addresses.ok()) {
      return Unavailable("the name ", host, " is not known: ", Message(addresses.status()));
    }
    Status why;
    for (const HostAddress& address : *addresses) {
      why = own_.Take(address);
      if (why.ok()) break;
    }
    TENON_RETURN_IF_ERROR(why);
    const std::string own = own_.address().ToString();
    TENON_RETURN_IF_ERROR(CheckListening(options_, own));
    request_.set_address(own);
    return OkStatus();
  }

  /// A task of another machine cannot; of several of this one the first does.
  void TryToServe(const std::string& host) {
    auto server = std::make_unique<RegistrationServer>(options_);
    const int port = std::atoi(wanted_.address.c_str() + host.size() + 1);
    if (server->Listen(host, port).ok()) server_ = std::move(server);
  }

  Status Call(cluster::RegisterTaskResponse* response) {
    if (stub_ == nullptr) {
      stub_ =
          cluster::RegistrationService::NewStub(OpenChannel(wanted_.address, options_.credentials));
    }
    grpc::ClientContext context;
    AddToken(options_.credentials, &context);
    context.set_deadline(GrpcDeadline(kCallDeadline));
    return ConnectionError(stub_->RegisterTask(&context, request_, response), wanted_.address,
                           options_.credentials);
  }

  /// Whether trying again may help: the task that serves may not be there yet.
  static bool MayPass(const Status& error) {
    return error.code() == StatusCode::kUnavailable ||
           error.code() == StatusCode::kDeadlineExceeded;
  }

  std::string State(const Status& tried) const {
    if (!tried.ok()) return std::string(Message(tried));
    return StrCat(registered_, " of ", wanted_.num_ps + wanted_.num_workers, " have registered at ",
                  wanted_.address);
  }

  Status TooLate(const Status& tried) const {
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(options_.start_up_deadline).count();
    return DeadlineExceeded("not all tasks have come within ", seconds, " s: ", State(tried),
                            tried.ok() ? ""
                                       : "; one of the tasks runs on that host, where it serves "
                                         "the others (--rendezvous)");
  }

  const Registration& wanted_;
  const ServerOptions& options_;
  Clock& clock_;
  const Clock::Time begin_;
  Clock::Time next_notice_;
  OwnPort own_;
  cluster::RegisterTaskRequest request_;
  int registered_ = 0;
  std::unique_ptr<cluster::RegistrationService::Stub> stub_;
  std::unique_ptr<RegistrationServer> server_;
};

Status AddHosts(const std::string& job,
                const google::protobuf::RepeatedPtrField<std::string>& hosts,
                ClusterSpec* cluster) {
  for (int i = 0; i < hosts.size(); ++i) {
    TENON_RETURN_IF_ERROR(cluster->AddTask(job, i, hosts[i]));
  }
  return OkStatus();
}

Status RegisterTask(ResolvedTask* task, const ServerOptions& options) {
  const Registration wanted = *std::exchange(task->registration, std::nullopt);
  TENON_ASSIGN_OR_RETURN(const cluster::RegisterTaskResponse response,
                         Registrant(wanted, options).Register());
  TENON_RETURN_IF_ERROR(AddHosts(kParameterServerJob, response.ps_hosts(), &task->cluster));
  TENON_RETURN_IF_ERROR(AddHosts(kWorkerJob, response.worker_hosts(), &task->cluster));
  task->job = response.job();
  task->task = response.task();
  task->role = RoleOfJob(task->job).value_or(TaskRole::kWorker);
  const std::string source = StrCat("registered at ", wanted.address);
  task->settings = {{"cluster", task->cluster.ToString(), source},
                    {"task", TaskName(task->job, task->task), source}};
  if (options.notice) options.notice(task->Describe());
  return OkStatus();
}

}  // namespace

Status TakeTask(ResolvedTask* task, ServerOptions* options) {
  if (task->registration) TENON_RETURN_IF_ERROR(RegisterTask(task, *options));
  options->cluster = task->cluster;
  options->job = task->job;
  options->task = task->task;
  return OkStatus();
}

}  // namespace tenon
