// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/peer_stream.h"

#include <grpcpp/generic/generic_stub.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/rendezvous.h"
#include "distributed/cluster_spec.h"
#include "distributed/grpc/channel.h"
#include "proto/worker_service.grpc.pb.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/test_cluster.h"

namespace tenon {
namespace {

using testing::TestCluster;

/// The calling end of a peer stream, frame by frame.
class Caller final : public FrameReceiver {
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
    stream_->Write(batch.Take(), nullptr);
    EXPECT_TRUE(Wait());
  }
  cluster::PeerFrame Next() {
    while (frames_.empty()) {
      grpc::ByteBuffer message;
      stream_->Read(&message, nullptr);
      if (!Wait() || !reader_.Read(&message, *this).ok()) {
        ADD_FAILURE() << "the stream has ended";
        return {};
      }
    }
    cluster::PeerFrame frame = std::move(frames_.front());
    frames_.pop_front();
    return frame;
  }

 private:
  void OnFrame(cluster::PeerFrame frame) override { frames_.push_back(std::move(frame)); }
  bool WantsTensor(uint64_t) override { return false; }
  void OnTensor(uint64_t, const Status&, Tensor, bool) override {}
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
};

constexpr int64_t kStep = 77;

uint64_t IncarnationOf(const Server& server) {
  const auto stub = tensorflow::WorkerService::NewStub(
      OpenChannel(*AddressOfTarget(server.target())));
  grpc::ClientContext context;
  GetStatusResponse response;
  EXPECT_TRUE(stub->GetStatus(&context, GetStatusRequest(), &response).ok());
  return response.device_attributes(0).incarnation();
}

/// Asks for a tensor that the server's first device never makes.
cluster::PeerFrame RecvFrame(Server& server, uint64_t call) {
  cluster::PeerFrame frame;
  frame.set_call(call);
  frame.mutable_recv_tensor()->set_step_id(kStep);
  const std::string device = server.task() + "/device:CPU:0";
  frame.mutable_recv_tensor()->set_rendezvous_key(
      RendezvousKey{device, IncarnationOf(server), device, "never", 0, 0}.ToString());
  return frame;
}

TEST(PeerStreamTest, AMasterThatIsGoneLeavesNoStepBehind) {
  TestCluster servers(1, 1);
  servers.StartAll();
  const std::string address = *servers.spec().Address("ps", 0);
  Caller other(address);
  {
    Caller master(address);
    cluster::PeerFrame run;
    run.set_call(1);
    run.mutable_run_graph()->set_step_id(kStep);
    run.mutable_run_graph()->set_graph_handle("unknown");
    master.Send(run);
    EXPECT_EQ(master.Next().answer().ran_graph().status_code(), error::ABORTED);
    other.Send(RecvFrame(servers.at("ps", 0), 5));
    // The server reads a stream in order: now it has the receive.
    cluster::PeerFrame bad;
    bad.set_call(6);
    other.Send(bad);
    EXPECT_EQ(other.Next().answer().code(), static_cast<int>(StatusCode::kInvalidArgument));
  }
  const cluster::PeerFrame answer = other.Next();
  EXPECT_EQ(answer.call(), 5u);
  EXPECT_EQ(answer.answer().code(), static_cast<int>(StatusCode::kAborted));
  EXPECT_THAT(answer.answer().message(), ::testing::HasSubstr("step 77 has been cleaned up"));
}

TEST(PeerStreamTest, CleaningUpEndsTheReceivesOfAStep) {
  TestCluster servers(1, 1);
  servers.StartAll();
  const std::string address = *servers.spec().Address("ps", 0);
  Caller master(address);
  master.Send(RecvFrame(servers.at("ps", 0), 1));
  cluster::PeerFrame clean_up;
  clean_up.mutable_cleanup_graph()->set_step_id(kStep);
  master.Send(clean_up);
  const cluster::PeerFrame answer = master.Next();
  EXPECT_EQ(answer.call(), 1u);
  EXPECT_EQ(answer.answer().code(), static_cast<int>(StatusCode::kAborted));
}

}  // namespace
}  // namespace tenon
