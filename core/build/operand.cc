// SPDX-License-Identifier: Apache-2.0
#include "core/build/operand.h"

#include <cmath>
#include <limits>
#include <utility>

namespace tenon {
namespace {

template <typename T>
Status OutOfRangeFor(T value, DType dtype) {
  return InvalidArgument("the literal ", value, " is no ", ToString(dtype));
}

/// `value` as an element at `place` of `out`.
template <typename V>
Status Store(V value, int64_t place, Tensor* out) {
  const DType dtype = out->dtype();
  if (dtype == DType::kBool) {
    if (value != V(0) && value != V(1)) return OutOfRangeFor(value, dtype);
    out->data<bool>()[place] = value != V(0);
    return OkStatus();
  }
  bool fits = true;
  const bool number = Dispatch(dtype, NumericTypes(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T>) {
      if constexpr (std::is_integral_v<V>) {
        fits = std::in_range<T>(value);
      } else {
        fits = std::trunc(value) == value &&
               value >= static_cast<V>(std::numeric_limits<T>::min()) &&
               value < std::ldexp(V(1), std::numeric_limits<T>::digits);
      }
      if (fits) out->data<T>()[place] = static_cast<T>(value);
    } else {
      out->data<T>()[place] = T(static_cast<double>(value));
    }
  });
  return number && fits ? OkStatus() : OutOfRangeFor(value, dtype);
}

/// The dtype that can hold values of both.
DType Wider(DType a, DType b) {
  for (const DType t :
       {DType::kString, DType::kFloat, DType::kUInt64, DType::kInt64, DType::kInt32}) {
    if (a == t || b == t) return t;
  }
  return a;
}

}  // namespace

const PartialShape& Output::shape() const {
  static const PartialShape* const unknown = new PartialShape;
  return exists() ? node->output_shape(index) : *unknown;
}

DType Literal::NaturalType() const {
  switch (value_.index()) {
    case 0:
      return DType::kBool;
    case 1: {
      const int64_t value = std::get<int64_t>(value_);
      return value == static_cast<int32_t>(value) ? DType::kInt32 : DType::kInt64;
    }
    case 2:
      return DType::kUInt64;
    case 3:
      return DType::kFloat;
    case 4:
      return DType::kString;
    default:
      break;
  }
  const auto& elements = std::get<std::vector<Literal>>(value_);
  if (elements.empty()) return DType::kInt32;
  DType type = elements[0].NaturalType();
  for (const Literal& e : elements) type = Wider(type, e.NaturalType());
  return type;
}

StatusOr<Tensor> Literal::ToTensor(DType dtype) const {
  std::vector<int64_t> dims;
  for (const Literal* l = this;;) {
    const auto* elements = std::get_if<std::vector<Literal>>(&l->value_);
    if (elements == nullptr) break;
    dims.push_back(static_cast<int64_t>(elements->size()));
    if (elements->empty()) break;
    l = &(*elements)[0];
  }
  Tensor out(dtype, Shape(dims));
  int64_t place = 0;
  TENON_RETURN_IF_ERROR(Append(dtype, 0, dims, &place, &out));
  return out;
}

Status Literal::Append(DType dtype, int depth, const std::vector<int64_t>& dims, int64_t* place,
                       Tensor* out) const {
  const auto* elements = std::get_if<std::vector<Literal>>(&value_);
  const bool deeper = depth < static_cast<int>(dims.size());
  if ((elements != nullptr) != deeper ||
      (deeper && static_cast<int64_t>(elements->size()) != dims[depth])) {
    return InvalidArgument("the braces of a literal differ in length");
  }
  if (deeper) {
    for (const Literal& e : *elements) {
      TENON_RETURN_IF_ERROR(e.Append(dtype, depth + 1, dims, place, out));
    }
    return OkStatus();
  }
  const int64_t at = (*place)++;
  if (const auto* text = std::get_if<std::string>(&value_)) {
    if (dtype != DType::kString)
      return InvalidArgument("the literal \"", *text, "\" is no ", ToString(dtype));
    out->data<TString>()[at] = *text;
    return OkStatus();
  }
  if (const auto* truth = std::get_if<bool>(&value_))
    return Store(static_cast<int64_t>(*truth), at, out);
  if (const auto* whole = std::get_if<int64_t>(&value_)) return Store(*whole, at, out);
  if (const auto* whole = std::get_if<uint64_t>(&value_)) return Store(*whole, at, out);
  return Store(std::get<double>(value_), at, out);
}

}  // namespace tenon
