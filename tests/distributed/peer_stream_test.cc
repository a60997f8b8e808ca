// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/peer/peer_stream.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include "core/device/rendezvous.h"
#include "distributed/grpc/rpc/channel.h"
#include "distributed/protocol/cluster_spec.h"
#include "proto/worker_service.grpc.pb.h"
#include "runtime/device/machine_clock.h"
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
  Allocator* MemoryFor(uint64_t) override { return nullptr; }
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
  const auto stub =
      tensorflow::WorkerService::NewStub(OpenChannel(*AddressOfTarget(server.target())));
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

/// What a stream writes, one message after the other, when the test says so.
class RecordedStream final : public PeerStream {
 public:
  explicit RecordedStream(Poller& poller) : PeerStream(poller) {}
  void Start() { Open(&reader_, &writer_); }
  void Cancel() override {}
  /// Ends the write that is on its way.
  bool WriteNext() {
    void* const tag = std::exchange(writer_.tag, nullptr);
    if (tag == nullptr) return false;
    EXPECT_OK(frames_.Read(&writer_.message, *this));
    static_cast<Completion*>(tag)->Complete(true);
    return true;
  }
  /// The other side has gone: the stream lets go of itself.
  void End() { static_cast<Completion*>(reader_.tag)->Complete(false); }
  std::vector<cluster::PeerFrame> written;

 private:
  struct NoReader final : grpc::internal::AsyncReaderInterface<grpc::ByteBuffer> {
    void Read(grpc::ByteBuffer*, void* t) override { tag = t; }
    void* tag = nullptr;
  };
  struct Writer final : grpc::internal::AsyncWriterInterface<grpc::ByteBuffer> {
    void Write(const grpc::ByteBuffer& m, void* t) override {
      message = m;
      tag = t;
    }
    void Write(const grpc::ByteBuffer& m, grpc::WriteOptions, void* t) override { Write(m, t); }
    grpc::ByteBuffer message;
    void* tag = nullptr;
  };
  void OnFrame(cluster::PeerFrame frame) override { written.push_back(std::move(frame)); }
  Allocator* MemoryFor(uint64_t) override { return nullptr; }
  void OnTensor(uint64_t, const Status&, Tensor, bool) override {}
  void OnBroken() override {}

  NoReader reader_;
  Writer writer_;
  FrameReader frames_;
};

TEST(PeerStreamTest, NothingThatEndsACallOvertakesIt) {
  ThreadPool pool(1);
  Poller poller(std::make_unique<grpc::CompletionQueue>(), pool, MachineClock());
  const auto stream = std::make_shared<RecordedStream>(poller);
  stream->Start();
  cluster::PeerFrame first, run, cancel, clean_up;
  first.set_call(1);
  run.set_call(2);
  run.mutable_run_graph();
  cancel.set_call(2);
  cancel.set_cancel(true);
  clean_up.mutable_cleanup_graph()->set_step_id(5);
  stream->Send(first);  // is on its way
  // So much waits that the call goes behind it.
  const Tensor large(DType::kUInt8, {3 << 20});
  const auto encoded = EncodeTensor(large, false, kTensorPartBytes);
  ASSERT_OK(encoded);
  for (const uint64_t call : {7, 8}) stream->SendTensor(call, *encoded);
  stream->Send(run);
  ASSERT_TRUE(stream->WriteNext());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(stream->WriteNext());
  stream->Send(cancel);
  stream->Send(clean_up);
  while (stream->WriteNext()) {
  }
  stream->End();
  std::vector<cluster::PeerFrame::ContentCase> order;
  for (const cluster::PeerFrame& frame : stream->written) order.push_back(frame.content_case());
  using Frame = cluster::PeerFrame;
  EXPECT_THAT(order, ::testing::ElementsAre(Frame::CONTENT_NOT_SET, Frame::kRunGraph,
                                            Frame::kCancel, Frame::kCleanupGraph));
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
