// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/rpc/rpc_server.h"

#include <vector>

#include "core/base/exceptions.h"
#include "distributed/grpc/rpc/channel.h"
#include "distributed/grpc/rpc/deadline.h"
#include "distributed/grpc/rpc/security.h"
#include "distributed/grpc/rpc/status.h"
#include "distributed/grpc/rpc/wire.h"

namespace tenon {

ServedRpc::ServedRpc(RpcServer& server) : server_(server) {
  MutexLock lock(server_.mu_);
  ++server_.living_;
}

ServedRpc::~ServedRpc() {
  MutexLock lock(server_.mu_);
  --server_.living_;
  server_.ended_.NotifyAll();
}

void ServedRpc::End(const Status& status) {
  if (answered_.exchange(true)) return;
  stream_.Finish(ToGrpc(status), finished_.tag());
}

void ServedRpc::EndWithMessage(const Status& status,
                               const google::protobuf::MessageLite& response) {
  if (!status.ok()) return End(status);
  grpc::ByteBuffer bytes;
  const Status written = CatchExceptions([&] {
    if (WriteMessage(response, &bytes)) return OkStatus();
    return ResourceExhausted("the answer is larger than a message can be: ",
                             response.ByteSizeLong(), " bytes, of at most ", kMaxMessageBytes);
  });
  if (!written.ok()) return End(written);
  EndWith(bytes);
}

void ServedRpc::RunHandler(const RpcServer::Handler& handler) {
  const Status status = CatchExceptions([&] {
    handler(shared_from_this());
    return OkStatus();
  });
  if (!status.ok()) End(status);
}

void ServedRpc::EndWith(const grpc::ByteBuffer& response) {
  if (answered_.exchange(true)) return;
  stream_.WriteAndFinish(response, grpc::WriteOptions(), grpc::Status::OK, finished_.tag());
}

void ServedRpc::OnEvent(Event event, bool ok) {
  const std::shared_ptr<ServedRpc> keep = shared_from_this();
  if (event == Event::kAccepted && ok) {
    server_.AcceptNext();
    return OnAccepted();
  }
  if (event == Event::kRead) {
    if (!ok) return End(InvalidArgument("the call came without a request"));
    return RunHandler(server_.methods_.find(context_.method())->second.handler);
  }
  if (event == Event::kDone && context_.IsCancelled()) {
    cancellation_.Cancel(Cancelled("the caller has cancelled the call or is gone"));
  }
  // A call that was not accepted, since the server shuts down, has no further events.
  const bool over = event == Event::kAccepted || ending_.fetch_sub(1) == 1;
  if (!over) return;
  MutexLock lock(server_.mu_);
  server_.rpcs_.erase(this);  // `keep` outlives the lock's scope
}

void ServedRpc::OnAccepted() {
  const auto method = server_.methods_.find(context_.method());
  const bool is_known = method != server_.methods_.end();
  if (HasToken(server_.credentials_, context_) ||
      (server_.loopback_is_free_ && IsFromLoopback(context_))) {
    server_.listener_.LetIn(context_);
  } else if (!is_known || !method->second.is_open) {
    server_.listener_.Refused(context_);
    return End(Status(StatusCode::kUnauthenticated, "the call does not carry this job's token"));
  }
  if (const int64_t calls = server_.num_calls(); calls > server_.limits_.calls) {
    return End(ResourceExhausted("the server answers ", calls, " calls, more than it may"));
  }
  if (!is_known) return End(Unimplemented("this server has no method ", context_.method()));
  if (!method->second.is_stream) return stream_.Read(&request_, read_.tag());
  bool too_late = false;
  {
    MutexLock lock(server_.mu_);
    server_.rpcs_[this].second = true;
    too_late = server_.shutting_down_;
  }
  if (too_late) Cancel();
  RunHandler(method->second.handler);
}

RpcServer::RpcServer(ThreadPool& pool, Clock& clock, const ServerLimits& limits,
                     const Credentials& credentials, std::function<void(const std::string&)> notice)
    : limits_(limits),
      credentials_(credentials),
      listener_(limits.connections, clock, std::move(notice)) {
  SetServerOptions(limits, &builder_);
  builder_.RegisterAsyncGenericService(&service_);
  std::unique_ptr<grpc::ServerCompletionQueue> queue = builder_.AddCompletionQueue();
  queue_ = queue.get();
  poller_ = std::make_unique<Poller>(std::move(queue), pool, clock);
}

RpcServer::~RpcServer() { Shutdown(std::chrono::milliseconds(0)); }

void RpcServer::HandleStream(const std::string& method, Handler handler) {
  methods_[method] = {true, std::move(handler)};
}
void RpcServer::HandleRaw(const std::string& method, Handler handler) {
  methods_[method] = {false, std::move(handler)};
}

void RpcServer::OpenToAnybody(const std::string& method) {
  methods_.find(method)->second.is_open = true;
}

StatusOr<int> RpcServer::ListenFor(const std::string& host, int port,
                                   const std::shared_ptr<grpc::ServerCredentials>& credentials) {
  using Acceptor = grpc::experimental::ExternalConnectionAcceptor;
  const std::shared_ptr<Acceptor> acceptor = builder_.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, credentials);
  return listener_.Listen(host, port, [acceptor](int socket) {
    Acceptor::NewConnectionParameters connection;
    connection.fd = socket;
    acceptor->HandleNewConnection(&connection);
  });
}

StatusOr<int> RpcServer::Listen(const std::string& host, int port) {
  return ListenFor(host, port, ServerCredentialsOf(credentials_));
}

StatusOr<int> RpcServer::ListenAtLoopback(int port) {
  loopback_is_free_ = true;
  return ListenFor("127.0.0.1", port, grpc::InsecureServerCredentials());
}

Status RpcServer::Start() {
  TENON_RETURN_IF_ERROR(CheckServerCredentials(credentials_));
  server_ = builder_.BuildAndStart();
  if (server_ == nullptr) return Internal("gRPC cannot start a server");
  AcceptNext();
  return listener_.Start();
}

int64_t RpcServer::num_calls() {
  MutexLock lock(mu_);
  return static_cast<int64_t>(rpcs_.size()) - 1;  // one is there to accept the next
}

void RpcServer::AcceptNext() {
  const std::shared_ptr<ServedRpc> rpc = std::make_shared<ServedRpc>(*this);
  {
    MutexLock lock(mu_);
    if (shutting_down_) return;
    rpcs_.emplace(rpc.get(), std::pair(rpc, false));
  }
  rpc->context_.AsyncNotifyWhenDone(rpc->done_.tag());
  service_.RequestCall(&rpc->context_, &rpc->stream_, queue_, queue_, rpc->accepted_.tag());
}

void ServedRpc::AwaitBeforeShutdown(std::function<bool()> busy) {
  MutexLock lock(server_.mu_);
  busy_ = std::move(busy);
}

void RpcServer::AwaitStreams(std::chrono::milliseconds grace) {
  constexpr std::chrono::milliseconds kPause{1};
  std::vector<std::function<bool()>> busy;
  {
    MutexLock lock(mu_);
    for (auto& [key, rpc] : rpcs_) {
      if (rpc.first->busy_) busy.push_back(rpc.first->busy_);
    }
  }
  Clock& clock = poller_->clock();
  for (const Clock::Time end = clock.Now() + grace; clock.Now() < end; clock.SleepFor(kPause)) {
    // A stream that is still called may be busy again: once idle is enough.
    std::erase_if(busy, [](const auto& is_busy) { return !is_busy(); });
    if (busy.empty()) return;
  }
}

void RpcServer::Shutdown(std::chrono::milliseconds grace) {
  if (server_ == nullptr) return;
  AwaitStreams(grace);  // the last answers say why all ends
  bool first = false;
  {
    MutexLock lock(mu_);
    first = !std::exchange(shutting_down_, true);
    for (auto& [key, rpc] : rpcs_) {
      if (first && rpc.second) rpc.first->Cancel();
    }
  }
  if (first) {
    listener_.Stop();
    server_->Shutdown(GrpcDeadline(grace));
  }
  MutexLock lock(mu_);
  while (living_ > 0) ended_.Wait(mu_);
}

}  // namespace tenon
