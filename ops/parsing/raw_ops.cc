// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <bit>

#include "absl/strings/escaping.h"
#include "core/base/mutex.h"
#include "core/op/op_registry.h"
#include "core/proto/proto_io_tensor.h"
#include "data/files/byte_stream.h"
#include "ops/arguments.h"
#include "ops/elements.h"
#include "ops/maths.h"
#include "ops/strings/map_elements.h"
#include "proto/example.pb.h"

namespace tenon {
namespace {

/// Copies the bytes of numbers of `type`, each in reverse order unless they are `little_endian`.
/// The halves of complex numbers are turned round one by one; a byte that is no bool's counts as
/// true.
void CopyNumbers(DType type, bool little_endian, const char* from, char* to, size_t size) {
  std::copy_n(from, size, to);
  const size_t unit = SizeOf(type) / (IsComplex(type) ? 2 : 1);
  static_assert(std::endian::native == std::endian::little);
  if (type == DType::kBool) std::transform(to, to + size, to, [](char c) { return c != 0; });
  if (little_endian || unit == 1) return;
  for (size_t i = 0; i < size; i += unit) std::reverse(to + i, to + i + unit);
}

Status DecodeRawKernel(KernelContext& ctx, const Tensor& in, bool little_endian) {
  const auto texts = in.flat<TString>();
  const DType type = ctx.output_type(0);
  const size_t width = SizeOf(type), size = texts.empty() ? 0 : texts[0].size();
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].size() != size) {
      return InvalidArgument(
          "DecodeRaw requires input strings to all be the same size, but element ", i, " has size ",
          texts[i].size(), " != ", size, ", that of element 0");
    }
  }
  if (size % width != 0) {
    return InvalidArgument("Input to DecodeRaw has length ", size, " that is not a multiple of ",
                           width, ", the size of ", type);
  }
  DimVector dims(in.shape().dims().begin(), in.shape().dims().end());
  dims.push_back(static_cast<int64_t>(size / width));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, dims));
  auto* to = static_cast<char*>(out->raw_data());
  for (const TString& text : texts) {
    if (Interrupted()) break;
    CopyNumbers(type, little_endian, text.data(), to, size);
    to += size;
  }
  return OkStatus();
}

Status DecodePaddedRawKernel(KernelContext& ctx, const Tensor& in, Integer length,
                             bool little_endian) {
  const DType type = ctx.output_type(0);
  const auto width = static_cast<int64_t>(SizeOf(type));
  if (length <= 0) return InvalidArgument("fixed_length is ", length.value, ", wanted more than 0");
  if (length % width != 0) {
    return InvalidArgument("fixed_length (", length.value, ") must be a multiple of ", width,
                           ", the size of ", type);
  }
  DimVector dims(in.shape().dims().begin(), in.shape().dims().end());
  dims.push_back(length / width);
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, dims));
  ZeroElements(out);
  auto* to = static_cast<char*>(out->raw_data());
  for (const TString& text : in.flat<TString>()) {
    if (Interrupted()) break;
    const size_t size = std::min<size_t>(text.size(), length);
    // The end of a number that was cut off counts as zeros.
    CopyNumbers(type, little_endian, text.data(), to, size / width * width);
    if (const size_t rest = size % width; rest != 0) {
      char number[sizeof(double)] = {};
      std::copy_n(text.data() + size - rest, rest, number);
      CopyNumbers(type, little_endian, number, to + size - rest, width);
    }
    to += length;
  }
  return OkStatus();
}

Status RawShape(ShapeContext& c) {
  if (!c.input(0).rank_known()) return OkStatus();
  return c.Return(c.input(0).ConcatWith(PartialShape{-1}));
}

StatusOr<std::string> Decompress(std::string_view bytes, Compression compression) {
  const auto source = MakeSource(bytes, compression);
  TString all;
  char piece[4096];
  for (size_t n = sizeof(piece); n == sizeof(piece) && !Interrupted();) {
    TENON_ASSIGN_OR_RETURN(n, source->Read(sizeof(piece), piece));
    all.append(piece, n);
  }
  return std::string(all);
}

/// What to do with an error in one element: the first one is that of the op.
template <typename Fn>
Status MapOrFail(KernelContext& ctx, Fn fn) {
  Status first;
  TENON_RETURN_IF_ERROR((MapElements<TString, TString>(ctx, [&](const TString& text) {
    StatusOr<std::string> made = first.ok() ? fn(text) : std::string();
    first.Update(made.status());
    return made.ok() ? TString(*made) : TString();
  })));
  return first;
}

Status DecodeCompressedKernel(KernelContext& ctx, const std::string& type) {
  if (type.empty()) return ctx.Return(ctx.TakeInput(0));
  TENON_ASSIGN_OR_RETURN(const Compression compression, ParseCompression(type));
  if (compression == Compression::kNone) {
    return InvalidArgument("compression_type is '", type, "', wanted 'ZLIB', 'GZIP' or ''");
  }
  return MapOrFail(ctx, [&](const TString& text) { return Decompress(text, compression); });
}

StatusOr<std::string> ExampleOfJson(const TString& text) {
  Example example;
  const auto status = google::protobuf::util::JsonStringToMessage(std::string(text), &example);
  if (!status.ok()) {
    return InvalidArgument("Error while parsing JSON: ", std::string(status.message()));
  }
  return example.SerializeAsString();
}

Status DecodeJsonKernel(KernelContext& ctx) { return MapOrFail(ctx, ExampleOfJson); }

Status ParseTensorKernel(KernelContext& ctx, DType wanted) {
  const TString& text = ctx.input(0).scalar<TString>();
  TensorProto proto;
  if (text.size() > INT32_MAX ||
      !proto.ParseFromArray(text.data(), static_cast<int>(text.size()))) {
    const std::string_view begin =
        std::string_view(text).substr(0, 60);  // of a message of any size
    return InvalidArgument(
        "Could not parse `serialized` as TensorProto, base64: ", absl::Base64Escape(ToAbsl(begin)),
        begin.size() < text.size() ? StrCat(" and on, ", text.size(), " bytes") : "");
  }
  TENON_ASSIGN_OR_RETURN(Tensor value, TensorFromProto(proto));
  if (value.dtype() != wanted) {
    return InvalidArgument("Type mismatch between parsed tensor (", value.dtype(), ") and dtype (",
                           wanted, ")");
  }
  return ctx.Return(std::move(value));
}

Status SerializeTensorKernel(KernelContext& ctx, const Tensor& value) {
  TensorProto proto;
  const bool text = value.dtype() == DType::kString;
  TENON_RETURN_IF_ERROR(
      TensorToProto(value, &proto, text ? TensorEncoding::kTyped : TensorEncoding::kContent));
  std::string bytes;
  if (proto.ByteSizeLong() > INT32_MAX || !proto.SerializeToString(&bytes)) {
    return InvalidArgument("a tensor of shape ", value.shape(), " is too large for a message");
  }
  return ctx.Return(Tensor::Scalar(std::move(bytes)));
}

}  // namespace

void RegisterRawOps(OpRegistry& ops) {
  const Tensor texts = Tensor::Vector({"abcdefghabcdefgh", "ABCDEFGHabcdefgh"});
  ops.Add("DecodeRaw", RawShape, DecodeRawKernel, {.attrs = {"little_endian"}})
      .Example({texts})
      .Example({texts}, {{"little_endian", false}});
  ops.Add("DecodePaddedRaw", RawShape, DecodePaddedRawKernel, {.attrs = {"little_endian"}})
      .Example({texts, Tensor::Scalar(24)});
  ops.Add("DecodeCompressed", UnchangedShape, DecodeCompressedKernel,
          {.attrs = {"compression_type"}})
      .Example({texts});
  ops.Add("DecodeJSONExample", UnchangedShape, DecodeJsonKernel)
      .Example({Tensor::Vector(
          {"{}", R"({"features": {"feature": {"a": {"int64List": {"value": [1]}}}}})"})});
  ops.Add("ParseTensor", UnknownShape, ParseTensorKernel, {.attrs = {"out_type"}})
      .NoExample("takes a serialized tensor; tests/ops/parsing/parsing_ops_test.cc covers it");
  ops.Add("SerializeTensor", ScalarShape, SerializeTensorKernel)
      .Example({Shape{2, 3}}, {{"T", DType::kFloat}});
}

}  // namespace tenon
