// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/peer_frames.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using testing::IsError;

/// What has arrived.
struct Arrivals final : FrameReceiver {
  void OnFrame(cluster::PeerFrame frame) override { frames.push_back(std::move(frame)); }
  void OnTensor(uint64_t call, Tensor tensor, bool is_dead) override {
    tensors.emplace(call, std::pair(std::move(tensor), is_dead));
  }
  std::vector<cluster::PeerFrame> frames;
  std::map<uint64_t, std::pair<Tensor, bool>> tensors;
};

cluster::PeerFrame CancelFrame(uint64_t call) {
  cluster::PeerFrame frame;
  frame.set_call(call);
  frame.set_cancel(true);
  return frame;
}

Tensor Counting(int64_t size) {
  Tensor t = Tensor::Zeros(DType::kInt64, {size});
  std::iota(t.data<int64_t>(), t.data<int64_t>() + size, 0);
  return t;
}

EncodedTensor Encode(const Tensor& tensor, size_t apart_above = SIZE_MAX) {
  auto encoded = EncodeTensor(tensor, false, apart_above);
  EXPECT_OK(encoded);
  EXPECT_TRUE(encoded->plain);
  return *std::move(encoded);
}

grpc::ByteBuffer Cut(const grpc::ByteBuffer& message, size_t bytes) {
  grpc::Slice whole;
  EXPECT_TRUE(message.DumpToSingleSlice(&whole).ok());
  const grpc::Slice part(whole.begin(), bytes);
  return grpc::ByteBuffer(&part, 1);
}

TEST(PeerFramesTest, FramesAndTensorsArriveWhole) {
  const Tensor small = Counting(3), shared = Counting(1000), empty = Counting(0);
  FrameBatch batch;
  batch.Add(CancelFrame(7));
  batch.AddTensor(1, Encode(small));
  batch.AddTensor(2, Encode(shared));
  batch.AddTensor(3, Encode(empty, 0));
  batch.Add(CancelFrame(8));
  EXPECT_GT(batch.num_bytes(), 8000u);
  grpc::ByteBuffer message = batch.Take();
  EXPECT_EQ(batch.num_bytes(), 0u);
  Arrivals arrivals;
  FrameReader reader;
  ASSERT_OK(reader.Read(&message, arrivals));
  ASSERT_EQ(arrivals.frames.size(), 2u);
  EXPECT_EQ(arrivals.frames[1].call(), 8u);
  ASSERT_EQ(arrivals.tensors.size(), 3u);
  EXPECT_EQ(arrivals.tensors[2].first.flat<int64_t>()[999], 999);
  EXPECT_EQ(arrivals.tensors[3].first.shape().num_elements(), 0);
}

TEST(PeerFramesTest, ALargeTensorComesInPartsAmongOthers) {
  const Tensor a = Counting(1000), b = Counting(500);
  const EncodedTensor head_a = Encode(a, 100), head_b = Encode(b, 100);
  ASSERT_TRUE(head_a.apart);
  EXPECT_LT(head_a.size(), 100u);
  Arrivals arrivals;
  FrameReader reader;
  const auto read = [&](FrameBatch& batch) {
    grpc::ByteBuffer message = batch.Take();
    return reader.Read(&message, arrivals);
  };
  FrameBatch batch;
  batch.AddTensor(1, head_a);
  batch.AddPart(1, a, 0, 3000);
  ASSERT_OK(read(batch));
  batch.AddTensor(2, head_b);
  batch.AddPart(2, b, 0, 4000);
  batch.Add(CancelFrame(9));
  batch.AddPart(1, a, 3000, 4000);
  ASSERT_OK(read(batch));
  EXPECT_EQ(arrivals.frames.size(), 1u);
  ASSERT_EQ(arrivals.tensors.size(), 1u);
  EXPECT_EQ(arrivals.tensors[2].first.flat<int64_t>()[499], 499);
  batch.AddPart(1, a, 7000, 1000);
  ASSERT_OK(read(batch));
  ASSERT_TRUE(arrivals.tensors.contains(1));
  for (int64_t i = 0; i < 1000; ++i) EXPECT_EQ(arrivals.tensors[1].first.flat<int64_t>()[i], i);
}

TEST(PeerFramesTest, PartsThatDoNotFitAreRefused) {
  const Tensor a = Counting(1000);
  const auto read = [&](const std::function<void(FrameBatch&)>& fill) {
    FrameBatch batch;
    fill(batch);
    grpc::ByteBuffer message = batch.Take();
    Arrivals arrivals;
    return FrameReader().Read(&message, arrivals);
  };
  const auto malformed = IsError(StatusCode::kInvalidArgument, "cannot be read");
  EXPECT_THAT(read([&](FrameBatch& batch) { batch.AddPart(1, a, 0, 100); }), malformed);
  EXPECT_THAT(read([&](FrameBatch& batch) {
                batch.AddTensor(1, Encode(a, 100));
                batch.AddPart(1, a, 0, 7999);
                batch.AddPart(1, a, 0, 2);
              }),
              malformed);
  EXPECT_THAT(read([&](FrameBatch& batch) {
                batch.AddTensor(1, Encode(a, 100));
                batch.AddTensor(1, Encode(a, 100));
              }),
              malformed);
}

TEST(PeerFramesTest, ATruncatedMessageIsRefusedWhereverItEnds) {
  const Tensor a = Counting(20);
  FrameBatch batch;
  batch.Add(CancelFrame(7));
  const size_t frame_bytes = batch.Take().Length();
  batch.Add(CancelFrame(7));
  batch.AddTensor(1, Encode(a, 0));
  batch.AddPart(1, a, 0, 160);
  const grpc::ByteBuffer whole = batch.Take();
  int whole_frames = 0;
  for (size_t size = 1; size < whole.Length(); ++size) {
    grpc::ByteBuffer message = Cut(whole, size);
    Arrivals arrivals;
    // It may end between two parts of the message only.
    if (FrameReader().Read(&message, arrivals).ok()) ++whole_frames;
    EXPECT_TRUE(arrivals.tensors.empty());
    EXPECT_EQ(arrivals.frames.size(), size >= frame_bytes ? 1u : 0u);
  }
  EXPECT_EQ(whole_frames, 2);
}

}  // namespace
}  // namespace tenon
