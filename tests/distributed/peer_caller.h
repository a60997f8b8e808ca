// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/device/rendezvous.h"
#include "core/proto/proto_io_graph.h"
#include "distributed/grpc/peer/local_socket.h"
#include "distributed/grpc/peer/peer_frames.h"
#include "distributed/grpc/peer/peer_memory.h"
#include "distributed/grpc/rpc/channel.h"
#include "distributed/protocol/cluster_spec.h"
#include "ops/register.h"
#include "proto/worker_service.grpc.pb.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/test_cluster.h"

namespace tenon::testing {

/// The calling end of a peer stream, frame by frame.
class Caller final : public FrameReceiver, private TensorReceiver {
 public:
  explicit Caller(const std::string& address) : stub_(OpenChannel(address)) {
    stream_ = stub_.PrepareCall(&context_, "/tenon.cluster.PeerService/Exchange", &queue_);
    stream_->StartCall(nullptr);
    EXPECT_TRUE(Wait());
    EXPECT_TRUE(Next().has_hello());
  }
  ~Caller() {
    context_.TryCancel();
    grpc::Status status;
    stream_->Finish(&status, nullptr);
    Wait();
  }

  void Send(const cluster::PeerFrame& frame) {
    FrameBatch batch;
    batch.Add(frame);
    Send(batch);
  }
  void Send(FrameBatch& batch) {
    if (socket_ != nullptr) {
      const grpc::ByteBuffer message = batch.Take();
      const StatusOr<bool> written = socket_->Write(&message);
      EXPECT_TRUE(written.ok() && *written);
      return;
    }
    stream_->Write(batch.Take(), nullptr);
    EXPECT_TRUE(Wait());
  }
  void SendOnStream(const cluster::PeerFrame& frame) {
    const std::unique_ptr<LocalSocket> kept = std::move(socket_);
    Send(frame);
  }
  bool was_offered() const { return offered_.has_value(); }
  /// The socket that the server has offered last.
  cluster::PeerSocket Offered() {
    ReadUntil([&] { return offered_.has_value(); });
    return offered_ ? *std::exchange(offered_, std::nullopt) : cluster::PeerSocket();
  }
  /// Calls and answers go through the socket from now on.
  void MoveTo(OwnedFile socket) {
    cluster::PeerFrame moved;
    moved.set_moved(true);
    Send(moved);
    EXPECT_TRUE(Next().moved());
    socket_ = std::make_unique<LocalSocket>(std::move(socket));
  }
  /// Whether the server ends the stream.
  bool Ends() {
    grpc::ByteBuffer message;
    stream_->Read(&message, nullptr);
    return !Wait();
  }
  LocalSocket* socket() { return socket_.get(); }
  cluster::PeerFrame Next() {
    if (!ReadUntil([&] { return !frames_.empty(); })) return {};
    cluster::PeerFrame frame = std::move(frames_.front());
    frames_.pop_front();
    return frame;
  }
  /// The tensor that comes next: whole, or where it is in the server's memory.
  struct Came {
    Tensor tensor;
    std::optional<uint64_t> place;
  };
  Came NextTensor() {
    if (!ReadUntil([&] { return came_.has_value(); })) return {};
    return *std::exchange(came_, std::nullopt);
  }

 private:
  template <typename IsThere>
  bool ReadUntil(IsThere is_there) {
    while (!is_there()) {
      if (socket_ != nullptr) {
        pollfd ready = {socket_->number(), POLLIN, 0};
        poll(&ready, 1, -1);
        const auto read =
            socket_->Read([&](std::string_view text) { return reader_.Read(text, *this); });
        EXPECT_OK(read);
        if (!read.ok()) return false;
        continue;
      }
      grpc::ByteBuffer message;
      stream_->Read(&message, nullptr);
      if (!Wait() || !reader_.Read(&message, *this).ok()) {
        ADD_FAILURE() << "the stream has ended";
        return false;
      }
    }
    return true;
  }
  void OnFrame(cluster::PeerFrame frame) override {
    if (frame.has_socket()) {
      offered_ = frame.socket();
    } else {
      frames_.push_back(std::move(frame));
    }
  }
  TensorReceiver* tensor_receiver() override { return this; }
  Allocator* MemoryFor(uint64_t) override { return &CpuAllocator(); }
  void OnTensor(uint64_t, const Status&, Tensor tensor, bool) override {
    came_ = {std::move(tensor), std::nullopt};
  }
  bool OnPlace(uint64_t, uint64_t address, ArrivingTensor arrived) override {
    came_ = {std::move(arrived.tensor), address};
    return true;
  }
  bool Wait() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  FrameReader reader_;
  std::deque<cluster::PeerFrame> frames_;
  std::optional<Came> came_;
  std::optional<cluster::PeerSocket> offered_;
  std::unique_ptr<LocalSocket> socket_;
};

inline uint64_t IncarnationOf(const Server& server) {
  const auto stub =
      tensorflow::WorkerService::NewStub(OpenChannel(*AddressOfTarget(server.target())));
  grpc::ClientContext context;
  GetStatusResponse response;
  EXPECT_TRUE(stub->GetStatus(&context, GetStatusRequest(), &response).ok());
  return response.device_attributes(0).incarnation();
}

/// A task whose graph gives `value` to whoever asks.
class Giver {
 public:
  explicit Giver(const Tensor& value) {
    servers_.StartAll();
    address_ = *servers_.spec().Address("ps", 0);
    Server& server = servers_.at("ps", 0);
    const std::string device = server.task() + "/device:CPU:0";
    const uint64_t incarnation = IncarnationOf(server);
    key_ = RendezvousKey{device, incarnation, device, "x", 0, 0}.ToString();
    Graph graph(AllOps());
    const AttributeMap constant = {{"dtype", value.dtype()}, {"value", value}};
    const AttributeMap edge = {{"T", value.dtype()},
                               {"tensor_name", "x"},
                               {"send_device", device},
                               {"send_device_incarnation", static_cast<int64_t>(incarnation)},
                               {"recv_device", device}};
    Node* const source = graph.AddNode("constant", "Const", constant, {}).value();
    Node* const send = graph.AddNode("send", "_Send", edge, {{source, 0}}).value();
    for (Node* n : {source, send}) n->set_assigned_device(device);
    RegisterGraphRequest request;
    EXPECT_OK(GraphToProto(graph, request.mutable_graph_def(), {true}));
    const auto stub = tensorflow::WorkerService::NewStub(OpenChannel(address_));
    grpc::ClientContext context;
    RegisterGraphResponse response;
    EXPECT_TRUE(stub->RegisterGraph(&context, request, &response).ok());
    handle_ = response.graph_handle();
  }
  const std::string& address() const { return address_; }

  /// The value, as it comes to a caller in another step.
  Caller::Came Give(Caller& caller) {
    cluster::PeerFrame run, recv;
    run.set_call(++calls_);
    run.mutable_run_graph()->set_step_id(calls_);
    run.mutable_run_graph()->set_graph_handle(handle_);
    caller.Send(run);
    EXPECT_EQ(caller.Next().answer().ran_graph().status_code(), error::OK);
    recv.mutable_recv_tensor()->set_step_id(calls_);
    recv.mutable_recv_tensor()->set_rendezvous_key(key_);
    recv.set_call(++calls_);
    caller.Send(recv);
    return caller.NextTensor();
  }
  int64_t calls() const { return calls_; }

 private:
  TestCluster servers_{1, 1};
  std::string address_, key_, handle_;
  int64_t calls_ = 0;
};

inline cluster::PeerFrame Challenge(const std::string& bytes) {
  cluster::PeerFrame frame;
  frame.set_memory_challenge(bytes);
  return frame;
}

inline cluster::PeerFrame ReadsMemory(bool reads = true) {
  cluster::PeerFrame frame;
  frame.set_reads_memory(reads);
  return frame;
}

/// A caller who has read the challenge in the server's memory.
struct Neighbour {
  explicit Neighbour(const std::string& address) : caller(address) {
    const std::string challenge = NewMemoryChallenge();
    caller.Send(Challenge(challenge));
    memory = PeerMemory::Open(caller.Next().memory_place(), challenge);
    caller.Send(ReadsMemory());
    cluster::PeerFrame proof;
    proof.set_memory_proof(memory->ReadProof());
    caller.Send(proof);
  }
  OwnedFile TakeSocket() { return memory->TakeSocket(caller.Offered()); }

  Caller caller;
  std::unique_ptr<PeerMemory> memory;
};

}  // namespace tenon::testing
