// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/generic/generic_stub.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "distributed/protocol/server.h"

// Calls to a server of this process, any method with any bytes.

namespace tenon::testing {

struct RpcMethod {
  std::string path;
  const google::protobuf::Message* request;
  /// A well-meant call may wait for as long as the caller lets it.
  bool may_wait = false;
};

/// All but Shutdown; inputs are kept, so new ones go to the end.
const std::vector<RpcMethod>& RpcMethods();
enum RpcNumber {
  kCreate,
  kExtend,
  kRun,
  kClose,
  kList,
  kReset,
  kPartialRun,
  kGetStatus,
  kCreateWorker,
  kDeleteWorker,
  kRegister,
  kDeregister,
  kRunGraph,
  kCleanupGraph,
  kCleanupAll,
  kRecv,
  kLogging,
  kTaskEnded,
  kServerStatus,
  kPeer
};

/// In requests these stand for the session that was created last and for the incarnation of the
/// server's device, as text and as a number.
inline constexpr char kLastHandle[] = "@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@";
inline constexpr char kIncarnation[] = "################";
inline constexpr int64_t kIncarnationNumber = 0x2323232323232323;
/// The top bit of a call's first byte: the next call does not wait for this one's answer.
inline constexpr int kDoNotWait = 0x80;

/// A server and calls to it. Ends the process when a call that should end does not, or ends in a
/// way that no call may, and when the server does not answer or anything is left of the calls.
class RpcCaller {
 public:
  RpcCaller();

  /// Up to eight calls, which share what the server has given: a byte that says which method, with
  /// kDoNotWait, and the request behind its length.
  void Run(std::string_view input);

 private:
  struct Call {
    int number;
    grpc::ClientContext context;
    std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
    grpc::ByteBuffer response;
    grpc::Status status;
  };

  void Begin(int number, const std::string& request);
  void WaitForAll();
  /// Waits for the next operation's end; whether it went well.
  bool Next();
  void Ask(int number, const google::protobuf::Message& request,
           google::protobuf::Message* response);
  /// Writes a message on the stream, and opens that first.
  void SendToPeer(const std::string& message);
  /// Takes all answers: the server ends the stream when it has taken all messages.
  void EndStream();
  /// The server answers, and nothing of the calls goes on; then all that they have left is removed.
  void CleanUp();
  std::string FillIn(int number, std::string bytes) const;

  std::unique_ptr<Server> server_;
  std::unique_ptr<grpc::GenericStub> stub_;
  grpc::CompletionQueue queue_;
  uint64_t incarnation_ = 0;
  std::vector<std::unique_ptr<Call>> calls_;  // under way
  std::unique_ptr<Call> last_;
  std::unique_ptr<grpc::ClientContext> stream_context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  bool stream_ok_ = false;
  std::vector<std::string> sessions_;
};

}  // namespace tenon::testing
