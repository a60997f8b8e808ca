// SPDX-License-Identifier: Apache-2.0
//
// Ops that take texts apart: the first byte chooses one, the rest is the text, for Example messages
// two of them, cut where a second byte says.
#include "core/memory/memory_limit.h"
#include "proto/example.pb.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/testing/op_runner.h"

namespace tenon::testing {
namespace {

constexpr int64_t kDecodeMemory = int64_t{256} << 20;

Tensor Texts(const std::vector<std::string>& values) { return Tensor::Vector(values); }
Tensor Text(std::string_view value) { return Tensor::Scalar(TString(value)); }
Tensor Nothing(DType dtype) { return Tensor(dtype, Shape{0}); }

OpResult Csv(std::string_view text) {
  return RunOp(
      "DecodeCSV",
      {Texts({std::string(text)}), Nothing(DType::kInt64), Tensor::Scalar(1.0f), Text("-")},
      {{"OUT_TYPE", DTypeVector{DType::kInt64, DType::kFloat, DType::kString}}});
}

OpResult Examples(std::string_view bytes) {
  const size_t wanted = bytes.empty() ? 0 : static_cast<uint8_t>(bytes[0]);
  bytes.remove_prefix(std::min<size_t>(1, bytes.size()));
  const size_t cut = std::min(wanted, bytes.size());
  return RunOp(
      "ParseExampleV2",
      {Texts({std::string(bytes.substr(0, cut)), std::string(bytes.substr(cut))}),
       Nothing(DType::kString), Texts({"s", "t"}), Texts({"d", "e", "v"}), Texts({"r"}),
       Tensor::Vector<float>({0, 0}), Nothing(DType::kString), Tensor::Scalar<int64_t>(-1)},
      {{"num_sparse", int64_t{2}},
       {"sparse_types", DTypeVector{DType::kInt64, DType::kString}},
       {"ragged_value_types", DTypeVector{DType::kFloat}},
       {"ragged_split_types", DTypeVector{DType::kInt64}},
       {"Tdense", DTypeVector{DType::kFloat, DType::kString, DType::kInt64}},
       {"dense_shapes", std::vector<PartialShape>{Shape{2}, Shape{1}, PartialShape({-1})}}});
}

OpResult Sequence(std::string_view bytes) {
  return RunOp(
      "ParseSequenceExampleV2",
      {Text(bytes), Text(""), Texts({"s"}), Texts({"d"}), Nothing(DType::kString), Texts({"t"}),
       Texts({"e"}), Texts({"r"}), Tensor::Of<bool>({1}, {true}), Tensor::Vector<float>({0, 0})},
      {{"Ncontext_sparse", int64_t{1}},
       {"context_sparse_types", DTypeVector{DType::kInt64}},
       {"context_ragged_value_types", DTypeVector()},
       {"context_ragged_split_types", DTypeVector()},
       {"Tcontext_dense", DTypeVector{DType::kFloat}},
       {"context_dense_shapes", std::vector<PartialShape>{Shape{2}}},
       {"Nfeature_list_sparse", int64_t{1}},
       {"feature_list_sparse_types", DTypeVector{DType::kString}},
       {"Nfeature_list_dense", int64_t{1}},
       {"feature_list_dense_types", DTypeVector{DType::kInt64}},
       {"feature_list_dense_shapes", std::vector<PartialShape>{Shape{1}}},
       {"feature_list_ragged_value_types", DTypeVector{DType::kFloat}},
       {"feature_list_ragged_split_types", DTypeVector{DType::kInt64}}});
}

struct Decoder {
  OpResult (*run)(std::string_view text);
  std::vector<std::string> (*seeds)();
};

template <int channels>
OpResult Picture(std::string_view bytes) {
  return RunOp("DecodeImage", {Text(bytes)}, {{"channels", int64_t{channels}}});
}
OpResult JpegShape(std::string_view bytes) { return RunOp("ExtractJpegShape", {Text(bytes)}); }
OpResult JpegWindow(std::string_view bytes) {
  return RunOp("DecodeAndCropJpeg", {Text(bytes), Tensor::Vector<int32_t>({1, 1, 2, 2})},
               {{"try_recover_truncated", true}, {"acceptable_fraction", 0.5f}});
}
OpResult Serialized(std::string_view bytes) {
  return RunOp("ParseTensor", {Text(bytes)}, {{"out_type", DType::kFloat}});
}
OpResult Json(std::string_view text) { return RunOp("DecodeJSONExample", {Text(text)}); }
OpResult Compressed(std::string_view bytes) {
  return RunOp("DecodeCompressed", {Text(bytes)}, {{"compression_type", "ZLIB"}});
}
template <const char* encoding>
OpResult Unicode(std::string_view bytes) {
  return RunOp("UnicodeDecodeWithOffsets", {Text(bytes)}, {{"input_encoding", encoding}});
}
constexpr char kUtf8[] = "UTF-8", kUtf16[] = "UTF-16-BE";

std::vector<std::string> CsvSeeds() { return {"1,2.5,\"a\"\"b\"", "1,,", "x,y,z"}; }

Feature FeatureOf(const std::vector<float>& values) {
  Feature f;
  for (const float v : values) f.mutable_float_list()->add_value(v);
  return f;
}
Feature IntegersOf(const std::vector<int64_t>& values) {
  Feature f;
  for (const int64_t v : values) f.mutable_int64_list()->add_value(v);
  return f;
}
Feature TextOf(const std::string& value) {
  Feature f;
  f.mutable_bytes_list()->add_value(value);
  return f;
}

Features SomeFeatures() {
  Features all;
  auto& by_name = *all.mutable_feature();
  by_name["s"] = IntegersOf({1, 2, 300});
  by_name["t"] = TextOf("text");
  by_name["d"] = FeatureOf({1, 2});
  by_name["e"] = TextOf("");
  by_name["v"] = IntegersOf({5});
  by_name["r"] = FeatureOf({0.5f});
  return all;
}

std::vector<std::string> ExampleSeeds() {
  Example example;
  *example.mutable_features() = SomeFeatures();
  const std::string message = example.SerializeAsString();
  return {'\0' + message, static_cast<char>(message.size()) + message + message};
}

std::vector<std::string> SequenceSeeds() {
  SequenceExample example;
  *example.mutable_context() = SomeFeatures();
  auto& lists = *example.mutable_feature_lists()->mutable_feature_list();
  *lists["t"].add_feature() = TextOf("a");
  *lists["e"].add_feature() = IntegersOf({7});
  *lists["e"].add_feature() = IntegersOf({8});
  *lists["r"].add_feature() = FeatureOf({1, 2});
  return {example.SerializeAsString()};
}

std::vector<std::string> PictureSeeds() {
  Tensor image(DType::kUInt8, {4, 5, 3});
  for (int i = 0; i < 60; ++i) image.data<uint8_t>()[i] = static_cast<uint8_t>(i * 4);
  std::vector<std::string> seeds;
  for (const char* op : {"EncodePng", "EncodeJpeg"}) {
    seeds.emplace_back(RunOpOrDie(op, {image}).scalar<TString>());
  }
  seeds.emplace_back(RunOpOrDie("EncodeJpeg", {image}, {{"progressive", true}}).scalar<TString>());
  // 2 x 1 pixels of 24 bits.
  seeds.push_back(
      std::string("BM\x3e\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\2\0\0\0\1\0\0\0\1\0\x18\0"
                  "\0\0\0\0\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\2\3\4\5\6\0\0",
                  62));
  return seeds;
}

std::vector<std::string> TensorSeeds() {
  return {std::string(
      RunOpOrDie("SerializeTensor", {Tensor::Vector<float>({1, 2, 3})}).scalar<TString>())};
}
std::vector<std::string> JsonSeeds() {
  return {R"({"features": {"feature": {"a": {"int64List": {"value": [1, "2"]}}}}})"};
}
std::vector<std::string> CompressedSeeds() {
  return {std::string("\x78\x9c\x4b\x4c\x4c\x04\x00\x02\x49\x01\x24", 11)};
}
std::vector<std::string> UnicodeSeeds() {
  return {"a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xff"};
}

constexpr Decoder kDecoders[] = {{Csv, CsvSeeds},
                                 {Examples, ExampleSeeds},
                                 {Sequence, SequenceSeeds},
                                 {Picture<0>, PictureSeeds},
                                 {Picture<4>, PictureSeeds},
                                 {JpegShape, PictureSeeds},
                                 {JpegWindow, PictureSeeds},
                                 {Serialized, TensorSeeds},
                                 {Json, JsonSeeds},
                                 {Compressed, CompressedSeeds},
                                 {Unicode<kUtf8>, UnicodeSeeds},
                                 {Unicode<kUtf16>, UnicodeSeeds}};

void FuzzDecoders(absl::Span<const uint8_t> data) {
  SetCpuMemoryLimit(kDecodeMemory);
  if (data.empty()) return;
  const Decoder& decoder = kDecoders[data[0] % std::size(kDecoders)];
  const OpResult result =
      decoder.run({reinterpret_cast<const char*>(data.data()) + 1, data.size() - 1});
  TENON_CHECK(result.status.code() != StatusCode::kInternal, result.status.ToString());
  if (!result.status.ok()) return;
  for (size_t i = 0; i < result.outputs.size(); ++i) {
    TENON_CHECK(result.outputs[i].dtype() == result.declared_types[i]);
    TENON_CHECK(result.declared_shapes[i].IsCompatibleWith(result.outputs[i].shape()));
  }
}

std::vector<std::string> DecodeSeeds() {
  std::vector<std::string> seeds;
  for (size_t i = 0; i < std::size(kDecoders); ++i) {
    for (const std::string& text : kDecoders[i].seeds()) {
      seeds.push_back(static_cast<char>(i) + text);
    }
  }
  return seeds;
}

const bool decode_registered =
    RegisterFuzzTarget({.name = "decode", .run = FuzzDecoders, .seeds = DecodeSeeds});

}  // namespace
}  // namespace tenon::testing
