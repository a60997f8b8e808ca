// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/peer/peer_frames.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "core/base/varint.h"
#include "core/memory/memory_limit.h"
#include "tests/testing/counting_allocator.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using testing::IsError;

/// What has arrived.
struct Arrivals final : FrameReceiver, TensorReceiver {
  TensorReceiver* tensor_receiver() override { return this; }
  void OnFrame(cluster::PeerFrame frame) override { frames.push_back(std::move(frame)); }
  Allocator* MemoryFor(uint64_t call) override {
    return unwanted.contains(call) ? nullptr : memory;
  }
  void OnTensor(uint64_t call, const Status& status, Tensor tensor, bool is_dead) override {
    statuses[call] = status;
    tensors.emplace(call, std::pair(std::move(tensor), is_dead));
  }
  bool OnPlace(uint64_t call, uint64_t address, ArrivingTensor arrived) override {
    places[call] = address;
    tensors.emplace(call, std::pair(std::move(arrived.tensor), arrived.is_dead));
    return reads_memory;
  }
  std::set<uint64_t> unwanted;
  bool reads_memory = true;
  std::map<uint64_t, uint64_t> places;
  Allocator* memory = &CpuAllocator();
  std::vector<cluster::PeerFrame> frames;
  std::map<uint64_t, Status> statuses;
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

TEST(PeerFramesTest, BytesThatStayWhereTheyAre) {
  const Tensor a = Counting(1000), b = Counting(500);
  Arrivals arrivals;
  arrivals.unwanted = {2};
  FrameReader reader;
  const auto read = [&](FrameBatch& batch) {
    grpc::ByteBuffer message = batch.Take();
    return reader.Read(&message, arrivals);
  };
  FrameBatch batch;
  batch.AddTensor(1, Encode(a, 100));
  batch.AddPlace(1, a);
  batch.AddTensor(2, Encode(b, 100));
  batch.AddPlace(2, b);
  ASSERT_OK(read(batch));
  EXPECT_EQ(arrivals.places[1], reinterpret_cast<uint64_t>(a.raw_data()));
  EXPECT_EQ(arrivals.places[2], reinterpret_cast<uint64_t>(b.raw_data()));
  EXPECT_EQ(arrivals.tensors[1].first.shape(), a.shape());
  EXPECT_FALSE(arrivals.tensors[2].first.valid());
  // The place alone, twice, and after a part of the bytes.
  batch.AddPlace(3, a);
  EXPECT_FALSE(read(batch).ok());
  batch.AddPlace(1, a);
  EXPECT_FALSE(read(batch).ok());
  batch.AddTensor(4, Encode(a, 100));
  batch.AddPart(4, a, 0, 3000);
  batch.AddPlace(4, a);
  EXPECT_FALSE(read(batch).ok());
  // Where memory cannot be read.
  arrivals.reads_memory = false;
  batch.AddTensor(5, Encode(a, 100));
  batch.AddPlace(5, a);
  EXPECT_FALSE(read(batch).ok());
  // Where it was cut off.
  arrivals.reads_memory = true;
  batch.AddTensor(6, Encode(a, 100));
  batch.AddPlace(6, a);
  const grpc::ByteBuffer whole = batch.Take();
  for (size_t bytes = whole.Length() - 1; bytes > whole.Length() - 10; --bytes) {
    grpc::ByteBuffer cut = Cut(whole, bytes);
    FrameReader other;
    EXPECT_FALSE(other.Read(&cut, arrivals).ok()) << bytes;
  }
}

TEST(PeerFramesTest, TensorsGoIntoTheMemoryThatTheReceiverNames) {
  testing::CountingAllocator memory;
  const Tensor small = Counting(3), large = Counting(1000);
  FrameBatch batch;
  batch.AddTensor(1, Encode(small));
  batch.AddTensor(2, Encode(large, 100));
  batch.AddPart(2, large, 0, 8000);
  batch.AddTensor(3, Encode(large));
  grpc::ByteBuffer message = batch.Take(), unary = ToByteBuffer(Encode(large));
  Arrivals arrivals;
  arrivals.memory = &memory;
  arrivals.unwanted = {3};
  ASSERT_OK(FrameReader().Read(&message, arrivals));
  EXPECT_EQ(memory.blocks, 2);
  ASSERT_EQ(arrivals.tensors.size(), 2u);
  EXPECT_TRUE(arrivals.tensors[1].first.Equals(small));
  EXPECT_TRUE(arrivals.tensors[2].first.Equals(large));
  Tensor tensor;
  bool is_dead = false;
  ASSERT_OK(DecodeTensorResponse(&unary, memory, &tensor, &is_dead));
  EXPECT_EQ(&tensor.allocator(), &memory);
  EXPECT_TRUE(tensor.Equals(large));
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

/// A PeerTensor's field in a message, around a RecvTensorResponse's bytes.
grpc::ByteBuffer TensorMessage(uint64_t call, const std::string& response) {
  std::string inner, outer;
  AppendVarint(&inner, 1 << 3);  // call
  AppendVarint(&inner, call);
  AppendVarint(&inner, 2 << 3 | 2);  // response
  AppendVarint(&inner, response.size());
  inner += response;
  AppendVarint(&outer, 2 << 3 | 2);  // tensor
  AppendVarint(&outer, inner.size());
  const grpc::Slice slice(outer + inner);
  return grpc::ByteBuffer(&slice, 1);
}

/// A RecvTensorResponse that says so of its tensor's bytes, whatever comes after that.
std::string Response(DataType dtype, const std::vector<int64_t>& dims, uint64_t num_bytes,
                     const std::string& bytes) {
  TensorShapeProto shape;
  for (const int64_t d : dims) shape.add_dim()->set_size(d);
  std::string tensor, response;
  AppendVarint(&tensor, 1 << 3);  // dtype
  AppendVarint(&tensor, dtype);
  AppendVarint(&tensor, 2 << 3 | 2);  // tensor_shape
  AppendVarint(&tensor, shape.ByteSizeLong());
  shape.AppendToString(&tensor);
  if (num_bytes > 0) {
    AppendVarint(&tensor, 4 << 3 | 2);  // tensor_content
    AppendVarint(&tensor, num_bytes);
    tensor += bytes;
  }
  AppendVarint(&response, 1 << 3 | 2);  // tensor
  AppendVarint(&response, tensor.size());
  return response + tensor;
}

TEST(PeerFramesTest, ASizeThatIsNotThereIsRefused) {
  for (const uint64_t size : {uint64_t{3'000'000'000}, uint64_t{1} << 31, uint64_t{1000}}) {
    const std::string response =
        Response(DT_UINT8, {static_cast<int64_t>(size)}, size, std::string(20, 'x'));
    grpc::ByteBuffer message = TensorMessage(1, response);
    Arrivals arrivals;
    EXPECT_THAT(FrameReader().Read(&message, arrivals),
                IsError(StatusCode::kInvalidArgument, "cannot be read"));
    EXPECT_TRUE(arrivals.tensors.empty());
    const grpc::Slice slice(response);
    grpc::ByteBuffer unary(&slice, 1);
    Tensor tensor;
    bool is_dead = false;
    EXPECT_THAT(DecodeTensorResponse(&unary, CpuAllocator(), &tensor, &is_dead),
                IsError(StatusCode::kInvalidArgument, "cannot be read"));
  }
}

TEST(PeerFramesTest, WhatProtobufDoesNotReadIsRefused) {
  const std::string dtype = "\x08\x04", content("\x22\x01x", 3), is_dead = "\x10\x01";  // uint8
  const std::string dim("\x12\x02\x08\x01", 4), null("\0", 1);
  const auto field = [](char tag, const std::string& bytes) {
    std::string out(1, tag);
    AppendVarint(&out, bytes.size());
    return out + bytes;
  };
  const std::string shape = field('\x12', dim), good = dtype + shape + content;
  const std::string long_tag("\x88\x80\x80\x80\x80\0", 6), long_size("\x81\x80\x80\x80\x80\0", 6);
  const std::string deep = std::string(99, '\x1b') + std::string(99, '\x1c');  // groups
  const struct {
    const char* what;
    std::string response;
  } cases[] = {
      {"a null at the end", field('\x0a', good) + null},
      {"a null at the tensor's end", field('\x0a', good + null)},
      {"a null in the tensor, then another message's field", field('\x0a', good + null + is_dead)},
      {"a null at the shape's end", field('\x0a', dtype + field('\x12', dim + null) + content)},
      {"the end of a group at the shape's end",
       field('\x0a', dtype + field('\x12', dim + "\x0c") + content)},
      {"a tag of six bytes", field('\x0a', long_tag + "\x04" + shape + content)},
      {"a length of six bytes", field('\x0a', dtype + shape + "\x22" + long_size + "x")},
      {"groups too deep", field('\x0a', dtype + field('\x12', dim + deep) + content)},
  };
  Tensor tensor;
  bool is_dead_tensor = false;
  const grpc::Slice whole(field('\x0a', good));
  grpc::ByteBuffer readable(&whole, 1);
  ASSERT_OK(DecodeTensorResponse(&readable, CpuAllocator(), &tensor, &is_dead_tensor));
  EXPECT_EQ(tensor.flat<uint8_t>()[0], 'x');
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    EXPECT_FALSE(RecvTensorResponse().ParseFromString(c.response));
    const grpc::Slice slice(c.response);
    grpc::ByteBuffer unary(&slice, 1), message = TensorMessage(1, c.response);
    EXPECT_THAT(DecodeTensorResponse(&unary, CpuAllocator(), &tensor, &is_dead_tensor),
                IsError(StatusCode::kInvalidArgument, "cannot be read"));
    Arrivals arrivals;
    EXPECT_THAT(FrameReader().Read(&message, arrivals),
                IsError(StatusCode::kInvalidArgument, "cannot be read"));
    EXPECT_TRUE(arrivals.tensors.empty());
  }
}

TEST(PeerFramesTest, ATagOfSixBytesIsNone) {
  const std::string dead_tensor = "\x12\x02\x10\x01";
  for (const bool long_tag : {false, true}) {
    const std::string call = long_tag ? std::string("\x88\x80\x80\x80\x80\0\x01", 7) : "\x08\x01";
    const std::string body = call + dead_tensor;
    const grpc::Slice slice(std::string{0x12, static_cast<char>(body.size())} + body);
    grpc::ByteBuffer message(&slice, 1);
    Arrivals arrivals;
    EXPECT_EQ(FrameReader().Read(&message, arrivals).ok(), !long_tag);
    EXPECT_EQ(arrivals.tensors.size(), long_tag ? 0u : 1u);
  }
}

TEST(PeerFramesTest, AShapeWhoseBytesNobodyCanCountIsRefused) {
  grpc::ByteBuffer message = TensorMessage(1, Response(DT_INT64, {int64_t{1} << 61, 1}, 0, ""));
  Arrivals arrivals;
  EXPECT_THAT(FrameReader().Read(&message, arrivals),
              IsError(StatusCode::kInvalidArgument, "cannot be read"));
}

TEST(PeerFramesTest, ForATensorThatNobodyWaitsForNoMemoryIsTaken) {
  const int64_t before = CpuAllocator().bytes_in_use();
  Arrivals arrivals;
  arrivals.unwanted = {1, 2};
  FrameReader reader;
  grpc::ByteBuffer apart = TensorMessage(1, Response(DT_UINT8, {int64_t{1} << 40}, 0, ""));
  ASSERT_OK(reader.Read(&apart, arrivals));
  FrameBatch batch;
  const Tensor a = Counting(1000);
  batch.AddPart(1, a, 0, 8000);
  batch.AddTensor(2, Encode(a));
  batch.AddTensor(3, Encode(a));
  grpc::ByteBuffer message = batch.Take();
  EXPECT_LT(CpuAllocator().bytes_in_use(), before + 20000);
  ASSERT_OK(reader.Read(&message, arrivals));
  ASSERT_EQ(arrivals.tensors.size(), 1u);
  EXPECT_TRUE(arrivals.tensors[3].first.Equals(a));
}

TEST(PeerFramesTest, WithoutMemoryForATensorTheOthersStillArrive) {
  Arrivals arrivals;
  FrameReader reader;
  const int64_t size = int64_t{1} << 50;
  grpc::ByteBuffer apart = TensorMessage(1, Response(DT_UINT8, {size}, 0, ""));
  ASSERT_OK(reader.Read(&apart, arrivals));
  SetCpuMemoryLimit(CpuAllocator().bytes_in_use() + 100'000);
  FrameBatch batch;
  const Tensor small = Counting(10);
  std::vector<char> memory(200'000);
  const Tensor large(DType::kUInt8, {200'000},
                     WrapBuffer(
                         memory.data(), memory.size(), [](void*) {}, nullptr));
  batch.AddPart(1, small, 0, 80);
  batch.AddTensor(2, Encode(large));
  batch.AddTensor(3, Encode(small));
  grpc::ByteBuffer message = batch.Take();
  const Status read = reader.Read(&message, arrivals);
  SetCpuMemoryLimit(int64_t{16} << 30);
  ASSERT_OK(read);
  EXPECT_THAT(arrivals.statuses[2], IsError(StatusCode::kResourceExhausted, "uint8[200000]"));
  EXPECT_OK(arrivals.statuses[3]);
  EXPECT_TRUE(arrivals.tensors[3].first.Equals(small));
}

TEST(PeerFramesTest, BoolsAreZeroOrOne) {
  Arrivals arrivals;
  FrameReader reader;
  grpc::ByteBuffer message =
      TensorMessage(1, Response(DT_BOOL, {4}, 4, std::string("\0\1\2\xff", 4)));
  ASSERT_OK(reader.Read(&message, arrivals));
  grpc::ByteBuffer apart = TensorMessage(2, Response(DT_BOOL, {3}, 0, ""));
  ASSERT_OK(reader.Read(&apart, arrivals));
  FrameBatch batch;
  batch.AddPart(2, Tensor::Of<uint8_t>({3}, {0, 7, 1}), 0, 3);
  grpc::ByteBuffer parts = batch.Take();
  ASSERT_OK(reader.Read(&parts, arrivals));
  const auto bytes = [&](uint64_t call) {
    const Tensor& t = arrivals.tensors[call].first;
    const auto* data = static_cast<const uint8_t*>(t.raw_data());
    return std::vector<int>(data, data + t.num_elements());
  };
  EXPECT_EQ(bytes(1), (std::vector<int>{0, 1, 1, 1}));
  EXPECT_EQ(bytes(2), (std::vector<int>{0, 1, 1}));
}

TEST(PeerFramesTest, ATensorOfTwoGibibytesGoesInPartsOnly) {
  const size_t size = size_t{1} << 31;
  static char byte;  // nobody reads the elements
  const Tensor large(DType::kUInt8, {static_cast<int64_t>(size)},
                     WrapBuffer(
                         &byte, size, [](void*) {}, nullptr));
  EXPECT_THAT(EncodeTensor(large, false),
              IsError(StatusCode::kResourceExhausted, "larger than a message can be"));
  const EncodedTensor apart = Encode(large, kTensorPartBytes);
  EXPECT_TRUE(apart.apart);
  EXPECT_LT(apart.size(), 100u);
  const EncodedTensor one_gibibyte =
      Encode(Tensor(DType::kUInt8, {1 << 30},
                    WrapBuffer(
                        &byte, size_t{1} << 30, [](void*) {}, nullptr)));
  EXPECT_EQ(one_gibibyte.payload.raw_data(), &byte);  // not copied
}

}  // namespace
}  // namespace tenon
