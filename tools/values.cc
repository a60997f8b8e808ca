// SPDX-License-Identifier: Apache-2.0
#include "tools/values.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "data/npy.h"

namespace tenon::tools {
namespace {

using Json = nlohmann::json;

Status FindShape(const Json& value, DimVector* dims) {
  const Json* v = &value;
  while (v->is_array()) {
    dims->push_back(static_cast<int64_t>(v->size()));
    if (v->empty()) return OkStatus();
    v = &v->front();
  }
  return OkStatus();
}

template <typename T>
Status ReadElement(const Json& value, T* out) {
  if constexpr (std::is_same_v<T, TString>) {
    if (!value.is_string()) return InvalidArgument("found ", value.dump(), ", wanted a text");
    *out = value.get<std::string>();
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!value.is_boolean()) return InvalidArgument("found ", value.dump(), ", wanted true or false");
    *out = value.get<bool>();
  } else {
    if (!value.is_number()) return InvalidArgument("found ", value.dump(), ", wanted a number");
    if constexpr (std::is_integral_v<T>) {
      if (!value.is_number_integer()) {
        return InvalidArgument("found ", value.dump(), ", wanted an integer");
      }
      const bool fits = value.is_number_unsigned() ? std::in_range<T>(value.get<uint64_t>())
                                                   : std::in_range<T>(value.get<int64_t>());
      if (!fits) return InvalidArgument("found ", value.dump(), ", which the dtype cannot hold");
      *out = static_cast<T>(value.get<int64_t>());
    } else {
      *out = static_cast<T>(value.get<double>());
    }
  }
  return OkStatus();
}

template <typename T>
Status Fill(const Json& value, absl::Span<const int64_t> dims, T** next) {
  if (dims.empty()) return ReadElement(value, (*next)++);
  if (!value.is_array() || static_cast<int64_t>(value.size()) != dims[0]) {
    return InvalidArgument("the lists are not all of one length: ", value.dump());
  }
  for (const Json& element : value) TENON_RETURN_IF_ERROR(Fill(element, dims.subspan(1), next));
  return OkStatus();
}

StatusOr<Tensor> ReadLiteral(std::string_view text, DType dtype) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    return InvalidArgument("cannot read '", text,
                           "'; wanted FILE.npy, FILE.npz:KEY, or a literal such as 1.5 or [[1,2]]");
  }
  DimVector dims;
  TENON_RETURN_IF_ERROR(FindShape(json, &dims));
  TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  TENON_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(CpuAllocator(), dtype, shape));
  Status status = Unimplemented("no literals of dtype ", ToString(dtype));
  using Types = decltype(ConcatTypes(RealTypes(), TypeList<bool, TString>()));
  Dispatch(dtype, Types(), [&](auto zero) {
    using T = decltype(zero);
    T* next = tensor.data<T>();
    status = Fill<T>(json, dims, &next);
  });
  TENON_RETURN_IF_ERROR(status);
  return tensor;
}

}  // namespace

StatusOr<Tensor> ReadValue(std::string_view text, DType dtype) {
  const size_t npz = text.find(".npz:");
  StatusOr<Tensor> value = Tensor();
  if (text.ends_with(".npy")) {
    value = ReadNpy(std::string(text));
  } else if (npz != std::string_view::npos) {
    TENON_ASSIGN_OR_RETURN(const NpzReader reader, NpzReader::Open(std::string(text.substr(0, npz + 4))));
    value = reader.Read(text.substr(npz + 5));
  } else {
    value = ReadLiteral(text, dtype);
  }
  TENON_RETURN_IF_ERROR(value.status());
  if (value->dtype() != dtype) {
    return InvalidArgument("'", text, "' is ", ToString(value->dtype()), ", wanted ",
                           ToString(dtype));
  }
  return value;
}

}  // namespace tenon::tools
