// SPDX-License-Identifier: Apache-2.0
#include "tools/run/values.h"

#include <cctype>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"

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

template <typename Number>
Status DoesNotFit(const Number& number, DType dtype) {
  return InvalidArgument("found ", number, ", which ", ToString(dtype), " cannot hold");
}

/// Rounds to a T; false for a finite number that would become infinite.
template <typename T>
bool Round(double value, T* out) {
  *out = static_cast<T>(value);
  return !std::isfinite(value) || std::isfinite(static_cast<double>(*out));
}

template <typename T>
Status ReadElement(const Json& value, T* out) {
  if constexpr (std::is_same_v<T, TString>) {
    if (!value.is_string()) return InvalidArgument("found ", value.dump(), ", wanted a text");
    *out = value.get<std::string>();
  } else if constexpr (std::is_same_v<T, bool>) {
    const bool is_digit = value == 0 || value == 1;
    if (!value.is_boolean() && !is_digit) {
      return InvalidArgument("found ", value.dump(), ", wanted true, false, 1 or 0");
    }
    *out = is_digit ? value == 1 : value.get<bool>();
  } else {
    if (!value.is_number()) return InvalidArgument("found ", value.dump(), ", wanted a number");
    if constexpr (std::is_integral_v<T>) {
      if (!value.is_number_integer()) {
        // One of more than 64 bits is read as a float.
        const bool is_large = std::abs(value.get<double>()) >= 0x1p63;
        if (is_large) return DoesNotFit(value.dump(), kDTypeOf<T>);
        return InvalidArgument("found ", value.dump(), ", wanted an integer");
      }
      const bool fits = value.is_number_unsigned() ? std::in_range<T>(value.get<uint64_t>())
                                                   : std::in_range<T>(value.get<int64_t>());
      if (!fits) return DoesNotFit(value.dump(), kDTypeOf<T>);
      *out = static_cast<T>(value.get<int64_t>());
    } else if (!Round(value.get<double>(), out)) {
      return DoesNotFit(value.dump(), kDTypeOf<T>);
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

/// A number on its way from one dtype to another.
template <typename T>
using Widest = std::conditional_t<!std::is_integral_v<T>, double,
                                  std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

template <typename From, typename To>
Status ConvertElements(const Tensor& from, Tensor* to) {
  To* out = to->data<To>();
  for (const From element : from.flat<From>()) {
    const auto value = static_cast<Widest<From>>(element);
    if constexpr (std::is_same_v<To, bool>) {
      if (value != 0 && value != 1) {
        return InvalidArgument("found ", value, ", wanted 1 or 0 for a bool");
      }
      *out++ = value == 1;
    } else if constexpr (!std::is_integral_v<To>) {
      if (!Round(static_cast<double>(value), out++)) return DoesNotFit(value, to->dtype());
    } else if constexpr (std::is_integral_v<From>) {
      if (!std::in_range<To>(value)) {
        return DoesNotFit(value, to->dtype());
      }
      *out++ = static_cast<To>(value);
    } else {
      // The bounds are powers of two, which a double holds as they are.
      const double low = static_cast<double>(std::numeric_limits<To>::min());
      const double high = std::ldexp(1.0, std::numeric_limits<To>::digits);
      if (!(value >= low && value < high) || value != std::floor(value)) {
        return InvalidArgument("found ", value, ", wanted ", ToString(to->dtype()));
      }
      *out++ = static_cast<To>(value);
    }
  }
  return OkStatus();
}

Json ParseLiteral(std::string_view text) {
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

/// The truth values of Python's spelling, outside of texts, in JSON's.
std::string WithJsonBooleans(std::string_view text) {
  std::string result;
  bool quoted = false;
  while (!text.empty()) {
    if (text[0] == '"' && !result.ends_with('\\')) quoted = !quoted;
    if (!quoted && (text.starts_with("True") || text.starts_with("False"))) {
      result += static_cast<char>(std::tolower(text[0]));
    } else {
      result += text[0];
    }
    text.remove_prefix(1);
  }
  return result;
}

/// The first number that no double holds, of which JSON says no more than that it is a mistake; ""
/// where there is none.
std::string TooLargeNumber(std::string_view text) {
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"' && (i == 0 || text[i - 1] != '\\')) quoted = !quoted;
    if (quoted || (text[i] != '-' && !std::isdigit(static_cast<unsigned char>(text[i])))) continue;
    const std::string_view number =
        text.substr(i, text.find_first_not_of("+-.0123456789eE", i) - i);
    double value = 0;
    if (absl::SimpleAtod(ToAbsl(number), &value) && std::isinf(value)) return std::string(number);
    i += number.size() - 1;
  }
  return "";
}

}  // namespace

StatusOr<Tensor> ReadLiteral(std::string_view text, DType dtype) {
  Json json = ParseLiteral(text);
  if (json.is_discarded()) json = ParseLiteral(WithJsonBooleans(text));
  if (json.is_discarded()) {
    const std::string number = TooLargeNumber(text);
    if (!number.empty()) return DoesNotFit(number, dtype);
    return InvalidArgument(
        "cannot read '", text,
        "'; wanted FILE.npy, FILE.npz:KEY, FILE.csv, - (the standard input), or a "
        "literal such as 1.5, [[1,2]], true or \"text\"");
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

StatusOr<Tensor> ConvertNumbers(const Tensor& value, DType dtype) {
  if (value.dtype() == dtype) return value;
  Status status = InvalidArgument("found ", ToString(value.dtype()), ", wanted ", ToString(dtype));
  StatusOr<Tensor> converted = status;
  using Types = decltype(ConcatTypes(RealTypes(), TypeList<bool>()));
  Dispatch(value.dtype(), Types(), [&](auto from) {
    Dispatch(dtype, Types(), [&](auto to) {
      converted = Tensor::Allocate(CpuAllocator(), dtype, value.shape());
      status = converted.status();
      if (status.ok()) status = ConvertElements<decltype(from), decltype(to)>(value, &*converted);
    });
  });
  TENON_RETURN_IF_ERROR(status);
  return converted;
}

}  // namespace tenon::tools
