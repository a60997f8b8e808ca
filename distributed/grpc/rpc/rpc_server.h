// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "core/base/cancellation.h"
#include "core/base/hash_map.h"
#include "core/base/mutex.h"
#include "distributed/grpc/polling/poller.h"
#include "distributed/grpc/rpc/listener.h"
#include "distributed/grpc/rpc/message_bytes.h"
#include "distributed/protocol/credentials.h"
#include "distributed/protocol/limits.h"

namespace tenon {

class RpcServer;

/// One call that is being answered. Thread-safe.
class ServedRpc final : public std::enable_shared_from_this<ServedRpc> {
 public:
  explicit ServedRpc(RpcServer& server);
  ~ServedRpc();
  ServedRpc(const ServedRpc&) = delete;
  ServedRpc& operator=(const ServedRpc&) = delete;

  /// What a method with one message was called with.
  grpc::ByteBuffer& request() { return request_; }
  /// The caller's address, as gRPC names it: "ipv4:127.0.0.1:40000".
  std::string peer() const { return context_.peer(); }
  /// Triggered when the caller has given up or is gone.
  Cancellation& cancellation() { return cancellation_; }
  /// For methods with streams.
  grpc::GenericServerAsyncReaderWriter& stream() { return stream_; }

  /// Answers with an error or, of a stream, with its end; or with a message. Only the first answer
  /// counts.
  void End(const Status& status);
  void EndWith(const grpc::ByteBuffer& response);
  /// With the message when `status` is OK and it is not too large.
  void EndWithMessage(const Status& status, const google::protobuf::MessageLite& response);
  /// Has a shutdown wait, for its grace, as long as `busy` of a stream says so. Once, by the
  /// handler.
  void AwaitBeforeShutdown(std::function<bool()> busy);
  /// Ends the call for both sides at once.
  void Cancel() { context_.TryCancel(); }

 private:
  friend class RpcServer;
  enum class Event { kAccepted, kRead, kFinished, kDone };
  struct Tag final : Completion {
    Tag(ServedRpc& rpc, Event event) : rpc(rpc), event(event) {}
    void Complete(bool ok) override { rpc.OnEvent(event, ok); }
    ServedRpc& rpc;
    const Event event;
  };

  void OnEvent(Event event, bool ok);
  void OnAccepted();
  /// What it throws ends the call.
  void RunHandler(const std::function<void(std::shared_ptr<ServedRpc>)>& handler);

  RpcServer& server_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  grpc::ByteBuffer request_;
  Cancellation cancellation_;
  Tag accepted_{*this, Event::kAccepted};
  Tag read_{*this, Event::kRead};
  Tag finished_{*this, Event::kFinished};
  Tag done_{*this, Event::kDone};
  std::atomic<int> ending_{2};  // kFinished and kDone are still to come
  std::atomic<bool> answered_{false};
  std::function<bool()> busy_;  // under server_.mu_; null until it is given
};

/// A server whose calls all come through one poller, by the names of their methods. gRPC's own
/// dispatch to generated services would need its callback interface, whose threads cost several
/// switches a message, or a thread a call.
class RpcServer {
 public:
  using Handler = std::function<void(std::shared_ptr<ServedRpc>)>;

  /// Pool and clock outlive the server; the pool's threads poll, see Poller. `notice` is for the
  /// Listener.
  RpcServer(ThreadPool& pool, Clock& clock, const ServerLimits& limits,
            const Credentials& credentials, std::function<void(const std::string&)> notice);
  ~RpcServer();

  const Credentials& credentials() const { return credentials_; }
  const ServerLimits& limits() const { return limits_; }
  /// Methods are to be given before Start, with their path: "/package.Service/Method". Handlers run
  /// where the poller waits and must not block.
  void HandleStream(const std::string& method, Handler handler);
  void HandleRaw(const std::string& method, Handler handler);
  /// `fn(const Request&, Response*, Cancellation*, Done)`: both messages live until Done is called,
  /// from any thread.
  template <typename Request, typename Response, typename Fn>
  void Handle(const std::string& method, Fn fn);

  /// Callers of this method, which has a handler, need no token. They stay strangers to the
  /// listener. Before Start.
  void OpenToAnybody(const std::string& method);

  /// Listens there, for callers with the credentials; see Listener. Returns the port. Before Start.
  StatusOr<int> Listen(const std::string& host, int port);
  /// Also listens at loopback, to clients of this machine and without credentials.
  StatusOr<int> ListenAtLoopback(int port);
  /// InvalidArgument when certificate and key do not belong together, or are none.
  Status Start();
  /// Stops listening, ends the streams when they are not busy any more, gives other calls `grace`
  /// to end, as it gave the streams, and waits for all.
  void Shutdown(std::chrono::milliseconds grace);

  Poller& poller() { return *poller_; }
  /// How many calls are being answered.
  int64_t num_calls();
  int64_t num_connections() { return listener_.num_connections(); }

 private:
  friend class ServedRpc;
  struct Method {
    bool is_stream;
    Handler handler;
    bool is_open = false;
  };

  StatusOr<int> ListenFor(const std::string& host, int port,
                          const std::shared_ptr<grpc::ServerCredentials>& credentials);
  void AcceptNext();
  /// Waits until each stream has been idle.
  void AwaitStreams(std::chrono::milliseconds grace);

  const ServerLimits limits_;
  const Credentials credentials_;
  bool loopback_is_free_ = false;
  grpc::ServerBuilder builder_;
  grpc::AsyncGenericService service_;
  grpc::ServerCompletionQueue* queue_;
  std::unique_ptr<grpc::Server> server_;
  StringMap<Method> methods_;
  Mutex mu_;
  CondVar ended_;
  bool shutting_down_ ABSL_GUARDED_BY(mu_) = false;
  int living_ ABSL_GUARDED_BY(mu_) = 0;
  /// The calls with operations under way, and whether they are streams.
  flat_hash_map<ServedRpc*, std::pair<std::shared_ptr<ServedRpc>, bool>> rpcs_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<Poller> poller_;
  Listener listener_;
};

template <typename Request, typename Response, typename Fn>
void RpcServer::Handle(const std::string& method, Fn fn) {
  HandleRaw(method, [fn = std::move(fn), method](std::shared_ptr<ServedRpc> rpc) {
    struct Messages {
      Request request;
      Response response;
    };
    auto messages = std::make_shared<Messages>();
    if (!ReadMessage(&rpc->request(), &messages->request)) {
      return rpc->End(InvalidArgument("the request of ", method, " cannot be read"));
    }
    fn(messages->request, &messages->response, &rpc->cancellation(),
       [rpc, messages](const Status& status) { rpc->EndWithMessage(status, messages->response); });
  });
}

}  // namespace tenon
