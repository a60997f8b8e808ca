// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/peer/peer_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "core/device/rendezvous.h"
#include "distributed/grpc/peer/peer_memory.h"
#include "runtime/device/machine_clock.h"
#include "tests/distributed/peer_caller.h"
#include "tests/testing/host_memory.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using testing::Caller;
using testing::Challenge;
using testing::Giver;
using testing::IncarnationOf;
using testing::ReadsMemory;
using testing::TestCluster;

constexpr int64_t kStep = 77;

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

TEST(PeerStreamTest, ACallerWhoseStepsNobodyCleansUpIsRefusedInTheEnd) {
  constexpr int kMost = 1 << 16, kAtOnce = 1 << 12;
  TestCluster servers(1, 1);
  servers.StartAll();
  Caller master(*servers.spec().Address("ps", 0));
  cluster::PeerFrame run;
  run.mutable_run_graph()->set_graph_handle("unknown");
  const auto code_of_next = [&] {
    const cluster::PeerFrame answer = master.Next();
    return answer.answer().code() != 0
               ? answer.answer().code()
               : static_cast<int>(answer.answer().ran_graph().status_code());
  };
  int step = 0;
  while (step < kMost) {
    FrameBatch batch;
    for (int i = 0; i < kAtOnce; ++i) {
      run.set_call(++step);
      run.mutable_run_graph()->set_step_id(step);
      batch.Add(run);
    }
    master.Send(batch);
    for (int i = 0; i < kAtOnce; ++i) ASSERT_EQ(code_of_next(), error::ABORTED);
  }
  const auto run_another = [&](int64_t id) {
    run.set_call(++step);
    run.mutable_run_graph()->set_step_id(id);
    master.Send(run);
    return code_of_next();
  };
  EXPECT_EQ(run_another(kMost + 1), error::RESOURCE_EXHAUSTED);
  EXPECT_EQ(run_another(7), error::ABORTED);  // another part of a step that is there
  cluster::PeerFrame clean_up;
  clean_up.mutable_cleanup_graph()->set_step_id(7);
  master.Send(clean_up);
  EXPECT_EQ(run_another(kMost + 1), error::ABORTED);
  EXPECT_EQ(run_another(kMost + 2), error::RESOURCE_EXHAUSTED);
}

/// Only the caller can know whether it can read them there.
TEST(PeerStreamTest, TensorsStayInMemoryForACallerWhoHasReadTheChallengeThere) {
  const testing::HostMemory usual(nullptr);
  Tensor value(DType::kInt64, {30000});
  std::iota(value.data<int64_t>(), value.data<int64_t>() + 30000, 5);
  Giver giver(value);
  std::unique_ptr<PeerMemory> memory;
  uint64_t place = 0;
  {
    Caller caller(giver.address());
    const auto comes_whole = [&] {
      const Caller::Came came = giver.Give(caller);
      return !came.place && came.tensor.Equals(value);
    };
    EXPECT_TRUE(comes_whole());
    caller.Send(ReadsMemory());  // without having been shown anything
    EXPECT_TRUE(comes_whole());
    caller.Send(Challenge("short"));
    const std::string challenge = NewMemoryChallenge();
    caller.Send(Challenge(challenge));
    const cluster::PeerFrame shown = caller.Next();
    ASSERT_TRUE(shown.has_memory_place());
    EXPECT_TRUE(comes_whole());  // has not been read there yet
    memory = PeerMemory::Open(shown.memory_place(), challenge);
    ASSERT_NE(memory, nullptr);
    caller.Send(ReadsMemory());
    for (int i = 0; i < 3; ++i) {
      Caller::Came came = giver.Give(caller);
      ASSERT_TRUE(came.place);
      ASSERT_OK(memory->Read(*came.place, came.tensor.raw_data(), came.tensor.num_bytes()));
      EXPECT_TRUE(came.tensor.Equals(value));
      place = *came.place;
      cluster::PeerFrame taken;
      taken.set_taken(true);
      for (const int64_t call : {giver.calls(), giver.calls(), int64_t{99}}) {
        taken.set_call(call);
        caller.Send(taken);
      }
    }
    caller.Send(Challenge(NewMemoryChallenge()));  // shown once
    EXPECT_TRUE(giver.Give(caller).place);
    caller.Send(ReadsMemory(false));
    EXPECT_TRUE(comes_whole());
    caller.Send(ReadsMemory());
    EXPECT_TRUE(giver.Give(caller).place);
  }
  // The stream has gone: what was left for its caller may be freed.
  std::array<char, 8> bytes = {};
  Status read;
  while ((read = memory->Read(place, bytes.data(), bytes.size())).ok()) {
    MachineClock().SleepFor(std::chrono::milliseconds(1));
  }
  EXPECT_THAT(read, testing::IsError(StatusCode::kUnavailable, "does not show its memory"));
}

/// What a stream writes, one message after the other, when the test says so.
class RecordedStream final : public PeerStream, private TensorReceiver {
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
  TensorReceiver* tensor_receiver() override { return this; }
  Allocator* MemoryFor(uint64_t) override { return nullptr; }
  void OnTensor(uint64_t, const Status&, Tensor, bool) override {}
  bool OnPlace(uint64_t, uint64_t, ArrivingTensor) override { return false; }
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
