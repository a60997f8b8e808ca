// SPDX-License-Identifier: Apache-2.0
//
// The messages of one peer stream, in sequence, and a RecvTensorResponse. The first byte says which
// calls are waited for (bit n: those that leave n when divided by 8), the second how gRPC's slices
// are cut. Messages follow, each behind its length as a varint; the first one is also read as a
// RecvTensorResponse.
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>

#include <algorithm>

#include "core/memory/memory_limit.h"
#include "distributed/grpc/peer/peer_frames.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/message_mutation.h"

namespace tenon::testing {
namespace {

constexpr int64_t kFramesMemory = int64_t{64} << 20;

grpc::ByteBuffer CutIntoSlices(std::string_view message, size_t slice_bytes) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < message.size() || slices.empty(); at += slice_bytes) {
    const std::string_view part = message.substr(at, slice_bytes);
    slices.emplace_back(part.data(), part.size());
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

/// Equal for equal messages: elements of maps in order.
std::string Serialised(const google::protobuf::MessageLite& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream out(&stream);
  out.SetSerializationDeterministic(true);
  TENON_CHECK(message.SerializeToCodedStream(&out));
  out.Trim();
  return bytes;
}

/// What has come, compared with what came when the same messages were cut otherwise.
struct FrameLog final : FrameReceiver, TensorReceiver {
  TensorReceiver* tensor_receiver() override { return this; }
  explicit FrameLog(uint8_t wanted) : wanted(wanted) {}
  void OnFrame(cluster::PeerFrame frame) override { frames.push_back(Serialised(frame)); }
  Allocator* MemoryFor(uint64_t call) override {
    return (wanted >> (call % 8) & 1) != 0 ? &CpuAllocator() : nullptr;
  }
  void OnTensor(uint64_t call, const Status& status, Tensor tensor, bool is_dead) override {
    TENON_CHECK(MemoryFor(call) != nullptr);
    TENON_CHECK(!status.ok() || tensor.valid() || is_dead);
    // Every element is one of its type.
    if (tensor.valid() && tensor.dtype() == DType::kBool) {
      const auto* bytes = static_cast<const uint8_t*>(tensor.raw_data());
      TENON_CHECK(std::all_of(bytes, bytes + tensor.num_bytes(), [](uint8_t b) { return b < 2; }));
    }
    calls.push_back(call);
    // A few large ones at once have no memory, whoever comes first.
    if (tensor.valid() && tensor.num_bytes() > (1 << 20)) tensor = Tensor();
    tensors.push_back(std::move(tensor));
  }
  bool OnPlace(uint64_t call, uint64_t, ArrivingTensor arrived) override {
    TENON_CHECK(arrived.tensor.valid() == (MemoryFor(call) != nullptr && arrived.status.ok()));
    calls.push_back(call);
    return call % 2 == 0;
  }
  const uint8_t wanted;
  std::vector<std::string> frames;
  std::vector<uint64_t> calls;
  std::vector<Tensor> tensors;
};

/// Sends a tensor that has come once more, whole and in parts.
void SendAgain(const Tensor& tensor) {
  for (const size_t apart_above : {SIZE_MAX, size_t{0}}) {
    const auto encoded = EncodeTensor(tensor, false, apart_above);
    TENON_CHECK(encoded.ok(), encoded.status().ToString());
    FrameBatch batch;
    batch.AddTensor(9, *encoded);
    if (encoded->apart) {
      const size_t half = tensor.num_bytes() / 2;
      batch.AddPart(9, tensor, 0, half);
      batch.AddPart(9, tensor, half, tensor.num_bytes() - half);
    }
    grpc::ByteBuffer message = batch.Take();
    FrameLog log(0xff);
    TENON_CHECK(FrameReader().Read(&message, log).ok());
    TENON_CHECK(log.tensors.size() == 1);
    TENON_CHECK(SameTensor(log.tensors[0], tensor));
  }
}

void DecodeResponse(std::string_view bytes, size_t slice_bytes) {
  grpc::ByteBuffer message = CutIntoSlices(bytes, slice_bytes);
  Tensor tensor;
  bool is_dead = false;
  const Status status = DecodeTensorResponse(&message, CpuAllocator(), &tensor, &is_dead);
  // A protobuf object in between makes no difference.
  RecvTensorResponse response;
  Tensor expected;
  bool expected_dead = false;
  if (!response.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    TENON_CHECK(!status.ok());
    return;
  }
  const Status expected_status = ReadTensorResponse(response, &expected, &expected_dead);
  if (expected_status.code() == StatusCode::kResourceExhausted ||
      status.code() == StatusCode::kResourceExhausted) {
    return;
  }
  TENON_CHECK(status.code() == expected_status.code(),
              StrCat(status.ToString(), " / ", expected_status.ToString()));
  if (!status.ok()) return;
  TENON_CHECK(is_dead == expected_dead);
  if (!is_dead) TENON_CHECK(SameTensor(tensor, expected));
}

void FuzzFrames(absl::Span<const uint8_t> data) {
  google::protobuf::SetLogHandler(nullptr);
  SetCpuMemoryLimit(kFramesMemory);
  if (data.size() < 2) return;
  const size_t slice_bytes = 1 + data[1];
  std::string_view rest(reinterpret_cast<const char*>(data.data()) + 2, data.size() - 2);
  FrameLog whole(data[0]), cut(data[0]);
  FrameReader whole_reader, cut_reader;
  bool first = true;
  for (std::string_view piece; TakePiece(&rest, &piece); first = false) {
    if (first) DecodeResponse(piece, slice_bytes);
    grpc::ByteBuffer message = CutIntoSlices(piece, piece.size() + 1);
    const Status status = whole_reader.Read(&message, whole);
    grpc::ByteBuffer same_message = CutIntoSlices(piece, slice_bytes);
    TENON_CHECK(status.code() == cut_reader.Read(&same_message, cut).code());
    if (!status.ok()) break;  // the stream ends
  }
  TENON_CHECK(whole.frames == cut.frames && whole.calls == cut.calls);
  for (size_t i = 0; i < whole.tensors.size(); ++i) {
    const Tensor& tensor = whole.tensors[i];
    if (!tensor.valid() || !cut.tensors[i].valid()) continue;
    TENON_CHECK(SameTensor(tensor, cut.tensors[i]));
    if (i < 4 && IsPlain(tensor.dtype())) SendAgain(tensor);
  }
}

void MutateFrames(std::string* data, size_t max_size, uint64_t seed) {
  Random random(seed);
  if (data->size() < 3 || random.Chance(10)) return MutateAsLibFuzzer(data, max_size);
  if (random.Chance(5)) (*data)[random.Below(2)] = static_cast<char>(random.Below(256));
  std::vector<std::string> pieces;
  std::string_view rest = std::string_view(*data).substr(2), next;
  while (TakePiece(&rest, &next)) pieces.emplace_back(next);
  if (pieces.empty()) return MutateAsLibFuzzer(data, max_size);
  const int i = random.Below(static_cast<int>(pieces.size()));
  switch (random.Below(10)) {
    case 0:
      pieces.insert(pieces.begin() + i, pieces[i]);
      break;
    case 1:
      pieces.erase(pieces.begin() + i);
      break;
    case 2:
      MutateAsMessage(RecvTensorResponse(), &pieces[i], max_size, random);
      break;
    case 3:
      MutateAsLibFuzzer(&pieces[i], max_size);
      break;
    default:
      MutatePeerMessage(&pieces[i], max_size, random);
  }
  std::string changed = data->substr(0, 2);
  for (const std::string& piece : pieces) AppendPiece(&changed, piece);
  if (changed.size() <= max_size) *data = std::move(changed);
}

std::string Flat(grpc::ByteBuffer message) {
  grpc::Slice whole;
  TENON_CHECK(message.DumpToSingleSlice(&whole).ok());
  return std::string(reinterpret_cast<const char*>(whole.begin()), whole.size());
}

std::vector<std::string> FrameSeeds() {
  const std::string head("\xfd\x06", 2);  // calls of 1 modulo 8 are not waited for
  const Tensor numbers = Tensor::Of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor flags = Tensor::Of<bool>({4}, {true, false, true, true});
  const Tensor large = Tensor::Zeros(DType::kInt64, {300});
  const Tensor none = Tensor::Zeros(DType::kInt32, {0, 1 << 20});
  std::string seed = head;
  std::vector<std::string> seeds;
  for (const Tensor& tensor : {numbers, flags, large, none, Tensor::Scalar("text")}) {
    seeds.push_back(head);
    AppendPiece(&seeds.back(), Flat(ToByteBuffer(*EncodeTensor(tensor, false))));
  }
  FrameBatch batch;
  for (const Tensor& tensor : {numbers, flags, large, none}) {
    const uint64_t call = 2 + seeds.size();
    batch.AddTensor(call, *EncodeTensor(tensor, call == 4));
    AppendPiece(&seed, Flat(batch.Take()));
  }
  seeds.push_back(seed);
  // Parts of two tensors, one of them not waited for, in three messages.
  batch.AddTensor(1, *EncodeTensor(large, false, 100));
  batch.AddTensor(2, *EncodeTensor(numbers, false, 0));
  batch.AddPart(1, large, 0, 1000);
  seed = head;
  AppendPiece(&seed, Flat(batch.Take()));
  batch.AddPart(2, numbers, 0, 10);
  batch.AddPart(1, large, 1000, 1400);
  AppendPiece(&seed, Flat(batch.Take()));
  batch.AddPart(2, numbers, 10, 14);
  AppendPiece(&seed, Flat(batch.Take()));
  seeds.push_back(seed);
  // A tensor that stays where it is, and one of which nothing else has come.
  batch.AddTensor(5, *EncodeTensor(large, false, 100));
  batch.AddPlace(5, large);
  batch.AddPlace(6, numbers);
  seed = head;
  AppendPiece(&seed, Flat(batch.Take()));
  seeds.push_back(seed);
  // Calls and answers.
  cluster::PeerFrame hello, run, recv, clean, cancel, answer;
  hello.mutable_hello()->set_task("/job:worker/replica:0/task:0");
  run.set_call(3);
  run.mutable_run_graph()->set_graph_handle("g");
  run.mutable_run_graph()->set_step_id(7);
  run.mutable_run_graph()->add_recv_key("key");
  run.mutable_run_graph()->add_send()->set_name("name");
  recv.set_call(4);
  recv.mutable_recv_tensor()->set_rendezvous_key("key");
  clean.mutable_cleanup_graph()->set_step_id(7);
  cancel.set_call(3);
  cancel.set_cancel(true);
  answer.set_call(3);
  answer.mutable_answer()->set_message("why");
  for (const auto* frame : {&hello, &run, &recv, &clean, &cancel, &answer}) batch.Add(*frame);
  seed = head;
  AppendPiece(&seed, Flat(batch.Take()));
  seeds.push_back(seed);
  return seeds;
}

const bool frames_registered = RegisterFuzzTarget(
    {.name = "frames", .run = FuzzFrames, .mutate = MutateFrames, .seeds = FrameSeeds});

}  // namespace
}  // namespace tenon::testing
