// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/rpc_caller.h"

#include <thread>

#include "distributed/grpc/rpc/channel.h"
#include "distributed/grpc/rpc/message_bytes.h"
#include "distributed/protocol/cluster_spec.h"
#include "ops/register.h"
#include "proto/cluster_service.pb.h"
#include "proto/master.pb.h"
#include "proto/peer_service.pb.h"
#include "proto/worker.pb.h"
#include "tests/fuzz/message_mutation.h"

namespace tenon::testing {
namespace {

using google::protobuf::Message;
using std::chrono::milliseconds;

constexpr size_t kMaxCalls = 8;
/// What may wait is given up after the first time, what may not must be back within the second: the
/// fuzzer itself complains after ten seconds an input, but tests run on machines that are busy.
constexpr milliseconds kMayWait{100}, kMustEnd{20'000};

const std::string kMasterPath = "/tensorflow.MasterService/";
const std::string kWorkerPath = "/tensorflow.WorkerService/";
const std::string kClusterPath = "/tenon.cluster.ClusterService/";
const std::string kPeerPath = "/tenon.cluster.PeerService/Exchange";

grpc::ByteBuffer AsMessage(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace

const std::vector<RpcMethod>& RpcMethods() {
  static const std::vector<RpcMethod> methods = {
      {kMasterPath + "CreateSession", &CreateSessionRequest::default_instance()},
      {kMasterPath + "ExtendSession", &ExtendSessionRequest::default_instance()},
      {kMasterPath + "RunStep", &RunStepRequest::default_instance(), true},
      {kMasterPath + "CloseSession", &CloseSessionRequest::default_instance()},
      {kMasterPath + "ListDevices", &ListDevicesRequest::default_instance()},
      {kMasterPath + "Reset", &ResetRequest::default_instance()},
      {kMasterPath + "PartialRunSetup", &PartialRunSetupRequest::default_instance()},
      {kWorkerPath + "GetStatus", &GetStatusRequest::default_instance()},
      {kWorkerPath + "CreateWorkerSession", &CreateWorkerSessionRequest::default_instance()},
      {kWorkerPath + "DeleteWorkerSession", &DeleteWorkerSessionRequest::default_instance()},
      {kWorkerPath + "RegisterGraph", &RegisterGraphRequest::default_instance()},
      {kWorkerPath + "DeregisterGraph", &DeregisterGraphRequest::default_instance()},
      {kWorkerPath + "RunGraph", &RunGraphRequest::default_instance(), true},
      {kWorkerPath + "CleanupGraph", &CleanupGraphRequest::default_instance()},
      {kWorkerPath + "CleanupAll", &CleanupAllRequest::default_instance()},
      {kWorkerPath + "RecvTensor", &RecvTensorRequest::default_instance(), true},
      {kWorkerPath + "Logging", &LoggingRequest::default_instance()},
      {kClusterPath + "TaskEnded", &cluster::TaskEndedRequest::default_instance()},
      {kClusterPath + "ServerStatus", &cluster::ServerStatusRequest::default_instance()},
      {kPeerPath, &cluster::PeerFrames::default_instance(), true}};
  return methods;
}

RpcCaller::RpcCaller() {
  ServerOptions options;
  options.port = 0;
  options.threads = 2;
  options.start_up_deadline = milliseconds(1000);
  options.files = FileAccess{FileAccess::Kind::kNone, ""};
  options.limits.sessions = 50;
  options.limits.session_timeout = std::chrono::seconds(2);
  options.limits.graph_nodes = 10'000;
  auto server = Server::Start(options, AllOps());
  TENON_CHECK(server.ok(), server.status().ToString());
  server_ = *std::move(server);
  stub_ = std::make_unique<grpc::GenericStub>(OpenChannel(*AddressOfTarget(server_->target())));
  GetStatusResponse status;
  Ask(kGetStatus, GetStatusRequest(), &status);
  incarnation_ = status.device_attributes(0).incarnation();
}

void RpcCaller::Run(std::string_view input) {
  size_t count = 0;
  for (std::string_view request; !input.empty() && count < kMaxCalls; ++count) {
    const auto head = static_cast<uint8_t>(input[0]);
    input.remove_prefix(1);
    if (!TakePiece(&input, &request)) request = {};
    const int number = (head & 0x7f) % static_cast<int>(RpcMethods().size());
    const std::string bytes = FillIn(number, std::string(request));
    if (number == kPeer) {
      SendToPeer(bytes);
    } else {
      Begin(number, bytes);
    }
    if ((head & kDoNotWait) == 0 && number != kPeer) WaitForAll();
  }
  EndStream();
  WaitForAll();
  CleanUp();
}

void RpcCaller::Begin(int number, const std::string& request) {
  auto call = std::make_unique<Call>();
  call->number = number;
  const RpcMethod& method = RpcMethods()[number];
  call->context.set_deadline(std::chrono::system_clock::now() +
                             (method.may_wait ? kMayWait : kMustEnd));
  call->reader = stub_->PrepareUnaryCall(&call->context, method.path, AsMessage(request), &queue_);
  call->reader->StartCall();
  call->reader->Finish(&call->response, &call->status, call.get());
  calls_.push_back(std::move(call));
}

void RpcCaller::WaitForAll() {
  for (size_t i = 0; i < calls_.size(); ++i) Next();
  for (const auto& call : calls_) {
    const RpcMethod& method = RpcMethods()[call->number];
    const auto code = call->status.error_code();
    TENON_CHECK(method.may_wait || code != grpc::StatusCode::DEADLINE_EXCEEDED, method.path);
    // TensorFlow's client would repeat the call.
    TENON_CHECK(code != grpc::StatusCode::UNAVAILABLE || method.may_wait,
                StrCat(method.path, ": ", call->status.error_message()));
    TENON_CHECK(code != grpc::StatusCode::INTERNAL || method.may_wait,
                StrCat(method.path, ": ", call->status.error_message()));
    CreateSessionResponse created;
    if (call->number == kCreate && call->status.ok() && ReadMessage(&call->response, &created)) {
      sessions_.push_back(created.session_handle());
    }
  }
  last_ = calls_.empty() ? nullptr : std::move(calls_.back());
  calls_.clear();
}

bool RpcCaller::Next() {
  void* tag = nullptr;
  bool ok = false;
  TENON_CHECK(queue_.Next(&tag, &ok));
  return ok;
}

void RpcCaller::Ask(int number, const Message& request, Message* response) {
  Begin(number, request.SerializeAsString());
  WaitForAll();
  TENON_CHECK(last_->status.ok(), last_->status.error_message());
  TENON_CHECK(ReadMessage(&last_->response, response));
}

void RpcCaller::SendToPeer(const std::string& message) {
  WaitForAll();
  if (stream_ == nullptr) {
    stream_context_ = std::make_unique<grpc::ClientContext>();
    stream_context_->set_deadline(std::chrono::system_clock::now() + kMustEnd);
    stream_ = stub_->PrepareCall(stream_context_.get(), kPeerPath, &queue_);
    stream_->StartCall(nullptr);
    stream_ok_ = Next();
  }
  if (!stream_ok_) return;
  stream_->Write(AsMessage(message), nullptr);
  stream_ok_ = Next();
}

void RpcCaller::EndStream() {
  WaitForAll();
  if (stream_ == nullptr) return;
  stream_->WritesDone(nullptr);
  Next();
  grpc::ByteBuffer answer;
  do {
    stream_->Read(&answer, nullptr);
  } while (Next());
  grpc::Status status;
  stream_->Finish(&status, nullptr);
  Next();
  TENON_CHECK(status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED);
  stream_.reset();
  stream_context_.reset();
}

void RpcCaller::CleanUp() {
  for (const std::string& handle : sessions_) {
    CloseSessionRequest request;
    request.set_session_handle(handle);
    Begin(kClose, request.SerializeAsString());
  }
  sessions_.clear();
  DeleteWorkerSessionRequest request;
  request.set_session_handle("w");
  Begin(kDeleteWorker, request.SerializeAsString());
  WaitForAll();
  ResetResponse reset;
  Ask(kReset, ResetRequest(), &reset);
  const auto deadline = std::chrono::steady_clock::now() + kMustEnd;
  while (true) {
    cluster::ServerStatusResponse status;
    Ask(kServerStatus, cluster::ServerStatusRequest(), &status);
    if (status.calls() <= 1 && status.num_receives() == 0) break;
    TENON_CHECK(std::chrono::steady_clock::now() < deadline, status.DebugString());
    std::this_thread::sleep_for(milliseconds(1));
  }
}

std::string RpcCaller::FillIn(int number, std::string bytes) const {
  const auto replace = [&bytes](std::string_view what, const std::string& with) {
    for (size_t at = 0; (at = bytes.find(what, at)) != std::string::npos; at += with.size()) {
      bytes.replace(at, what.size(), with);
    }
  };
  if (!sessions_.empty()) replace(kLastHandle, sessions_.back());
  replace(kIncarnation, StrCat(absl::Hex(incarnation_, absl::kZeroPad16)));
  RegisterGraphRequest request;
  if (number != kRegister || !request.ParseFromString(bytes)) return bytes;
  for (NodeDef& node : *request.mutable_graph_def()->mutable_node()) {
    for (auto& [name, value] : *node.mutable_attr()) {
      if (value.i() == kIncarnationNumber) {
        value.set_i(static_cast<int64_t>(incarnation_));
      }
    }
  }
  return request.SerializeAsString();
}

}  // namespace tenon::testing
