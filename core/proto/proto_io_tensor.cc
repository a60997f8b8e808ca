// SPDX-License-Identifier: Apache-2.0
#include "core/proto/proto_io_tensor.h"

#include <algorithm>
#include <complex>
#include <cstring>

#include "core/base/exceptions.h"
#include "core/base/varint.h"
#include "core/tensor/variant.h"

namespace tenon {
namespace {

std::string Name(DType dtype, const Shape& shape) {
  return StrCat(ToString(dtype), shape.ToString());
}

/// How one element is held in a list of messages' values: `kWidth` values an element.
struct PlainCodec {
  static constexpr int kWidth = 1;
  template <typename T, typename V>
  static T Decode(const V* v) {
    return static_cast<T>(*v);
  }
  template <typename T, typename List>
  static void Encode(const T& element, List* list) {
    list->Add(element);
  }
};

struct BitsCodec {
  static constexpr int kWidth = 1;
  template <typename T, typename V>
  static T Decode(const V* v) {
    return T::FromBits(static_cast<uint16_t>(*v));
  }
  template <typename T, typename List>
  static void Encode(const T& element, List* list) {
    list->Add(element.bits);
  }
};

struct ComplexCodec {
  static constexpr int kWidth = 2;
  template <typename T, typename V>
  static T Decode(const V* v) {
    return T(v[0], v[1]);
  }
  template <typename T, typename List>
  static void Encode(const T& element, List* list) {
    list->Add(element.real());
    list->Add(element.imag());
  }
};

/// Calls fn(T(), Codec(), list) with the C++ type of `dtype`, the repeated field that holds it and
/// how; the quantized types as the integers they are. False for the types without such a list.
template <typename Proto, typename Fn>
bool WithList(DType dtype, Proto& p, Fn fn) {
  constexpr bool kWrite = !std::is_const_v<Proto>;
#define TENON_LIST(FIELD)         \
  [&]() -> decltype(auto) {       \
    if constexpr (kWrite) {       \
      return p.mutable_##FIELD(); \
    } else {                      \
      return &p.FIELD();          \
    }                             \
  }()
  switch (dtype) {
    case DType::kFloat:
      return fn(float(), PlainCodec(), TENON_LIST(float_val)), true;
    case DType::kDouble:
      return fn(double(), PlainCodec(), TENON_LIST(double_val)), true;
    case DType::kInt32:
    case DType::kQInt32:
      return fn(int32_t(), PlainCodec(), TENON_LIST(int_val)), true;
    case DType::kInt16:
    case DType::kQInt16:
      return fn(int16_t(), PlainCodec(), TENON_LIST(int_val)), true;
    case DType::kUInt16:
    case DType::kQUInt16:
      return fn(uint16_t(), PlainCodec(), TENON_LIST(int_val)), true;
    case DType::kInt8:
    case DType::kQInt8:
    case DType::kInt4:
    case DType::kInt2:
      return fn(int8_t(), PlainCodec(), TENON_LIST(int_val)), true;
    case DType::kUInt8:
    case DType::kQUInt8:
    case DType::kUInt4:
    case DType::kUInt2:
      return fn(uint8_t(), PlainCodec(), TENON_LIST(int_val)), true;
    case DType::kInt64:
      return fn(int64_t(), PlainCodec(), TENON_LIST(int64_val)), true;
    case DType::kUInt32:
      return fn(uint32_t(), PlainCodec(), TENON_LIST(uint32_val)), true;
    case DType::kUInt64:
      return fn(uint64_t(), PlainCodec(), TENON_LIST(uint64_val)), true;
    case DType::kBool:
      return fn(bool(), PlainCodec(), TENON_LIST(bool_val)), true;
    case DType::kHalf:
      return fn(Half(), BitsCodec(), TENON_LIST(half_val)), true;
    case DType::kBFloat16:
      return fn(BFloat16(), BitsCodec(), TENON_LIST(half_val)), true;
    case DType::kComplex64:
      return fn(std::complex<float>(), ComplexCodec(), TENON_LIST(scomplex_val)), true;
    case DType::kComplex128:
      return fn(std::complex<double>(), ComplexCodec(), TENON_LIST(dcomplex_val)), true;
    default:
      return false;
  }
#undef TENON_LIST
}

bool IsFloat8(DType t) { return DType::kFloat8E5M2 <= t && t <= DType::kFloat8E5M2FNUZ; }

/// Makes room for a tensor of which the message holds `found` elements; `element` and `last` are
/// the bytes of an element and of the text that fills the rest.
StatusOr<Tensor> AllocateFilled(Allocator& memory, DType dtype, const Shape& shape, int64_t found,
                                size_t element, size_t last, int64_t* budget) {
  const int64_t missing = std::max<int64_t>(shape.num_elements() - found, 0);
  int64_t bytes;
  if (__builtin_mul_overflow(missing, static_cast<int64_t>(element + last), &bytes) ||
      bytes > *budget) {
    return InvalidArgument("a message with ", found, " values for a tensor ", Name(dtype, shape),
                           " would fill more memory than the ", *budget, " bytes allowed");
  }
  *budget -= bytes;
  return Tensor::Allocate(memory, dtype, shape);
}

/// The elements that TensorFlow does not send as plain memory (text; handles and variants, which
/// are serialized messages): in tensor_content as many varint lengths, then the bytes of all.
StatusOr<CountedVector<std::string_view>> PiecesOf(const std::string& content, DType dtype,
                                                   const Shape& shape) {
  const int64_t n = shape.num_elements();
  std::string_view rest = content;
  if (n > static_cast<int64_t>(content.size())) {
    return InvalidArgument("tensor_content of ", content.size(), " bytes cannot hold the ", n,
                           " lengths of a tensor ", Name(dtype, shape));
  }
  CountedVector<uint64_t> lengths(n);
  uint64_t total = 0;
  for (uint64_t& length : lengths) {
    if (!TakeVarint(&rest, &length) || length > content.size()) {
      return InvalidArgument("tensor_content has unreadable lengths, for a tensor ",
                             Name(dtype, shape));
    }
    total += length;
  }
  if (total != rest.size()) {
    return InvalidArgument("tensor_content has ", rest.size(), " bytes of elements, wanted ", total,
                           " for a tensor ", Name(dtype, shape));
  }
  CountedVector<std::string_view> pieces;
  pieces.reserve(n);
  for (const uint64_t length : lengths) {
    pieces.push_back(rest.substr(0, length));
    rest.remove_prefix(length);
  }
  return pieces;
}

StatusOr<Tensor> StringsFromContent(const std::string& content, const Shape& shape) {
  TENON_ASSIGN_OR_RETURN(const auto pieces, PiecesOf(content, DType::kString, shape));
  TENON_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(CpuAllocator(), DType::kString, shape));
  TString* text = t.data<TString>();
  for (const std::string_view piece : pieces) text++->assign(piece);
  return t;
}

/// The messages of a tensor's elements: those of `list`, or else of tensor_content, which `parsed`
/// then has.
template <typename Message>
StatusOr<const google::protobuf::RepeatedPtrField<Message>*> MessagesOf(
    const TensorProto& proto, const google::protobuf::RepeatedPtrField<Message>& list, DType dtype,
    const Shape& shape, google::protobuf::RepeatedPtrField<Message>* parsed) {
  const char* const what = dtype == DType::kResource ? "resource handles" : "variants";
  if (proto.tensor_content().empty()) {
    if (list.size() == shape.num_elements()) return &list;
    return InvalidArgument("found ", list.size(), " ", what, ", wanted ", shape.num_elements(),
                           " for a tensor ", Name(dtype, shape));
  }
  TENON_ASSIGN_OR_RETURN(const auto pieces, PiecesOf(proto.tensor_content(), dtype, shape));
  for (const std::string_view piece : pieces) {
    if (!parsed->Add()->ParseFromArray(piece.data(), static_cast<int>(piece.size()))) {
      return InvalidArgument("tensor_content has unreadable ", what, ", for a tensor ",
                             Name(dtype, shape));
    }
  }
  return parsed;
}

StatusOr<Tensor> PlainFromContent(const std::string& content, DType dtype, const Shape& shape,
                                  Allocator& memory) {
  const uint64_t wanted = static_cast<uint64_t>(shape.num_elements()) * SizeOf(dtype);
  if (wanted / SizeOf(dtype) != static_cast<uint64_t>(shape.num_elements()) ||
      wanted != content.size()) {
    return InvalidArgument("tensor_content has ", content.size(), " bytes, wanted ", wanted,
                           " for a tensor ", Name(dtype, shape));
  }
  TENON_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(memory, dtype, shape));
  if (dtype == DType::kBool) {
    // A C++ bool that is neither 0 nor 1 is undefined behaviour.
    std::transform(content.begin(), content.end(), t.data<bool>(), [](char c) { return c != 0; });
  } else {
    std::memcpy(t.raw_data(), content.data(), content.size());
  }
  return t;
}

StatusOr<Tensor> StringsFromList(const TensorProto& proto, const Shape& shape, int64_t* budget) {
  const auto& list = proto.string_val();
  const std::string last = list.empty() ? "" : list[list.size() - 1];
  TENON_ASSIGN_OR_RETURN(
      Tensor t, AllocateFilled(CpuAllocator(), DType::kString, shape, list.size(), sizeof(TString),
                               last.size(), budget));
  auto out = t.flat<TString>();
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = i < static_cast<size_t>(list.size()) ? list[static_cast<int>(i)] : last;
  }
  return t;
}

StatusOr<Tensor> HandlesOf(const TensorProto& proto, const Shape& shape) {
  google::protobuf::RepeatedPtrField<ResourceHandleProto> parsed;
  TENON_ASSIGN_OR_RETURN(const auto* handles, MessagesOf(proto, proto.resource_handle_val(),
                                                         DType::kResource, shape, &parsed));
  TENON_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(CpuAllocator(), DType::kResource, shape));
  ResourceHandle* handle = t.data<ResourceHandle>();
  for (const ResourceHandleProto& message : *handles) {
    TENON_ASSIGN_OR_RETURN(*handle++, ResourceHandleFromProto(message));
  }
  return t;
}

Status VariantsToList(absl::Span<const Variant> variants, TensorProto* out) {
  for (const Variant& v : variants) {
    VariantTensorDataProto* proto = out->add_variant_val();
    if (v.value == nullptr) continue;
    TENON_ASSIGN_OR_RETURN(VariantData data, v.value->Encode());
    proto->set_type_name(std::move(data.type_name));
    proto->set_metadata(std::move(data.metadata));
    for (const Tensor& t : data.tensors) {
      TENON_RETURN_IF_ERROR(TensorToProto(t, proto->add_tensors()));
    }
  }
  return OkStatus();
}

/// How deep variants may lie in the tensors of others: as deep as messages may in messages.
constexpr int kMaxVariantDepth = 50;

StatusOr<Tensor> FromProto(const TensorProto& proto, int64_t* budget, Allocator& memory, int depth);

StatusOr<Tensor> VariantsOf(const TensorProto& proto, const Shape& shape, int64_t* budget,
                            int depth) {
  if (depth > kMaxVariantDepth) {
    return InvalidArgument("found variants within variants, more than ", kMaxVariantDepth, " deep");
  }
  google::protobuf::RepeatedPtrField<VariantTensorDataProto> parsed;
  TENON_ASSIGN_OR_RETURN(const auto* variants,
                         MessagesOf(proto, proto.variant_val(), DType::kVariant, shape, &parsed));
  TENON_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(CpuAllocator(), DType::kVariant, shape));
  Variant* variant = t.data<Variant>();
  for (const VariantTensorDataProto& message : *variants) {
    VariantData data{message.type_name(), message.metadata(), {}};
    for (const TensorProto& part : message.tensors()) {
      TENON_ASSIGN_OR_RETURN(data.tensors.emplace_back(),
                             FromProto(part, budget, CpuAllocator(), depth));
    }
    TENON_ASSIGN_OR_RETURN(variant++->value, DecodeVariant(std::move(data)));
  }
  return t;
}

/// TensorFromProto of a tensor that lies within `depth` variants.
StatusOr<Tensor> FromProto(const TensorProto& proto, int64_t* budget, Allocator& memory,
                           int depth) {
  TENON_ASSIGN_OR_RETURN(const DType dtype, DTypeFromProto(proto.dtype()));
  if (IsRef(dtype)) return InvalidArgument("a tensor cannot be of dtype ", ToString(dtype));
  TENON_ASSIGN_OR_RETURN(const Shape shape, ShapeFromProto(proto.tensor_shape()));
  if (dtype == DType::kVariant) {
    return CatchExceptions([&] { return VariantsOf(proto, shape, budget, depth + 1); });
  }
  if (dtype == DType::kResource) {
    return CatchExceptions([&] { return HandlesOf(proto, shape); });
  }
  if (!proto.tensor_content().empty()) {
    if (dtype != DType::kString) {
      return PlainFromContent(proto.tensor_content(), dtype, shape, memory);
    }
    return CatchExceptions([&] { return StringsFromContent(proto.tensor_content(), shape); });
  }
  if (dtype == DType::kString) {
    return CatchExceptions([&] { return StringsFromList(proto, shape, budget); });
  }

  const int64_t n = shape.num_elements();
  if (IsFloat8(dtype)) {
    const std::string& bytes = proto.float8_val();
    const auto found = static_cast<int64_t>(bytes.size());
    TENON_ASSIGN_OR_RETURN(Tensor t, AllocateFilled(memory, dtype, shape, found, 1, 0, budget));
    auto* out = static_cast<char*>(t.raw_data());
    std::copy_n(bytes.data(), std::min(n, found), out);
    std::fill(out + std::min(n, found), out + n, bytes.empty() ? 0 : bytes.back());
    return t;
  }
  StatusOr<Tensor> result = Internal("no list for dtype ", ToString(dtype));
  WithList(dtype, proto, [&](auto zero, auto codec, const auto* list) {
    using T = decltype(zero);
    const int64_t found = list->size() / codec.kWidth;
    result = AllocateFilled(memory, dtype, shape, found, sizeof(T), 0, budget);
    if (!result.ok()) return;
    T* out = static_cast<T*>(result->raw_data());
    const int64_t copied = std::min(n, found);
    for (int64_t i = 0; i < copied; ++i) {
      out[i] = codec.template Decode<T>(list->data() + i * codec.kWidth);
    }
    std::fill(
        out + copied, out + n,
        found == 0 ? T() : codec.template Decode<T>(list->data() + (found - 1) * codec.kWidth));
  });
  return result;
}

}  // namespace

StatusOr<DType> DTypeFromProto(DataType type) {
  const auto dtype = DTypeFromNumber(static_cast<int>(type));
  if (!dtype || *dtype == DType::kInvalid) {
    return InvalidArgument("data type ", static_cast<int>(type), " is not known");
  }
  return *dtype;
}

void ShapeToProto(const Shape& shape, TensorShapeProto* out) {
  out->Clear();
  for (const int64_t d : shape.dims()) out->add_dim()->set_size(d);
}

void ShapeToProto(const PartialShape& shape, TensorShapeProto* out) {
  out->Clear();
  if (!shape.rank_known()) {
    out->set_unknown_rank(true);
    return;
  }
  for (const int64_t d : shape.dims()) out->add_dim()->set_size(d);
}

StatusOr<Shape> ShapeFromProto(const TensorShapeProto& proto) {
  if (proto.unknown_rank()) return InvalidArgument("the shape of a tensor must have a rank");
  DimVector dims;
  for (const auto& d : proto.dim()) dims.push_back(d.size());
  return Shape::Create(dims);
}

StatusOr<PartialShape> PartialShapeFromProto(const TensorShapeProto& proto) {
  if (proto.unknown_rank()) {
    if (proto.dim_size() > 0) {
      return InvalidArgument("a shape of unknown rank has ", proto.dim_size(), " dimensions");
    }
    return PartialShape();
  }
  DimVector dims;
  for (const auto& d : proto.dim()) dims.push_back(d.size());
  return PartialShape::Create(dims);
}

void ResourceHandleToProto(const ResourceHandle& handle, ResourceHandleProto* out) {
  out->Clear();
  out->set_device(std::string(handle.device));
  out->set_container(std::string(handle.container));
  out->set_name(std::string(handle.name));
  out->set_hash_code(handle.hash_code);
  out->set_maybe_type_name(std::string(handle.type_name));
  for (const auto& [dtype, shape] : handle.dtypes_and_shapes) {
    auto* entry = out->add_dtypes_and_shapes();
    entry->set_dtype(DTypeToProto(dtype));
    ShapeToProto(shape, entry->mutable_shape());
  }
}

StatusOr<ResourceHandle> ResourceHandleFromProto(const ResourceHandleProto& proto) {
  ResourceHandle handle;
  handle.device = proto.device();
  handle.container = proto.container();
  handle.name = proto.name();
  handle.hash_code = proto.hash_code();
  handle.type_name = proto.maybe_type_name();
  for (const auto& entry : proto.dtypes_and_shapes()) {
    TENON_ASSIGN_OR_RETURN(const DType dtype, DTypeFromProto(entry.dtype()));
    TENON_ASSIGN_OR_RETURN(PartialShape shape, PartialShapeFromProto(entry.shape()));
    handle.dtypes_and_shapes.emplace_back(dtype, std::move(shape));
  }
  return handle;
}

Status TensorToProto(const Tensor& tensor, TensorProto* out, TensorEncoding encoding) {
  if (!tensor.valid()) return InvalidArgument("a tensor without a value has no message");
  if (!tensor.IsHostMemory()) return InvalidArgument("the tensor is not in host memory");
  out->Clear();
  out->set_dtype(DTypeToProto(tensor.dtype()));
  ShapeToProto(tensor.shape(), out->mutable_tensor_shape());
  switch (tensor.dtype()) {
    case DType::kVariant:
      return VariantsToList(tensor.flat<Variant>(), out);
    case DType::kResource:
      for (const auto& handle : tensor.flat<ResourceHandle>()) {
        ResourceHandleToProto(handle, out->add_resource_handle_val());
      }
      return OkStatus();
    case DType::kString: {
      const auto text = tensor.flat<TString>();
      if (encoding == TensorEncoding::kTyped) {
        for (const TString& s : text) out->add_string_val(s.data(), s.size());
        return OkStatus();
      }
      std::string* content = out->mutable_tensor_content();
      content->reserve(tensor.num_bytes() + text.size());
      for (const TString& s : text) AppendVarint(content, s.size());
      for (const TString& s : text) content->append(std::string_view(s));
      return OkStatus();
    }
    default:
      break;
  }
  if (encoding == TensorEncoding::kTyped) {
    const bool written = WithList(tensor.dtype(), *out, [&](auto zero, auto codec, auto* list) {
      using T = decltype(zero);
      const T* elements = static_cast<const T*>(tensor.raw_data());
      list->Reserve(static_cast<int>(tensor.num_elements()) * codec.kWidth);
      for (int64_t i = 0; i < tensor.num_elements(); ++i) {
        codec.template Encode<T>(elements[i], list);
      }
    });
    if (written) return OkStatus();
    out->set_float8_val(tensor.raw_data(), tensor.num_bytes());
    return OkStatus();
  }
  out->set_tensor_content(tensor.raw_data(), tensor.num_bytes());
  return OkStatus();
}

StatusOr<Tensor> TensorFromProto(const TensorProto& proto, int64_t* fill_budget,
                                 Allocator& memory) {
  int64_t own_budget = kMaxFillBytes;
  return FromProto(proto, fill_budget == nullptr ? &own_budget : fill_budget, memory, 0);
}

}  // namespace tenon
