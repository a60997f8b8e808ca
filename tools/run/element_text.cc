// SPDX-License-Identifier: Apache-2.0
#include "tools/run/element_text.h"

#include <charconv>
#include <cmath>
#include <complex>
#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"

namespace tenon::tools {
namespace {

using ElementTypes = decltype(ConcatTypes(PlainTypes(), TypeList<TString>()));

template <typename T>
std::string NumberToText(T value) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
  return std::string(buffer, end);
}

std::string Field(const std::string& text, char delimiter) {
  const bool is_plain = text.find_first_of("\"\r\n") == std::string::npos;
  if (is_plain && text.find(delimiter) == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

template <typename T>
std::string FieldText(const T& value, char delimiter) {
  if constexpr (std::is_same_v<T, TString>) {
    return Field(std::string(std::string_view(value)), delimiter);
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_same_v<T, std::complex<float>> ||
                       std::is_same_v<T, std::complex<double>>) {
    const bool minus = std::signbit(value.imag());
    return StrCat(NumberToText(value.real()), minus ? "" : "+", NumberToText(value.imag()), "j");
  } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return NumberToText(static_cast<float>(value));
  } else {
    return NumberToText(value);
  }
}

template <typename T>
std::string JsonNumber(T value) {
  return std::isfinite(value) ? NumberToText(value) : "null";
}

template <typename T>
std::string JsonText(const T& value) {
  if constexpr (std::is_same_v<T, TString>) {
    const std::string text{std::string_view(value)};
    try {
      return nlohmann::json(text).dump();
    } catch (const nlohmann::json::exception&) {  // not UTF-8
      return StrCat("{\"b64\": \"", absl::Base64Escape(text), "\"}");
    }
  } else if constexpr (std::is_same_v<T, std::complex<float>> ||
                       std::is_same_v<T, std::complex<double>>) {
    return StrCat("[", JsonNumber(value.real()), ", ", JsonNumber(value.imag()), "]");
  } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return JsonNumber(static_cast<float>(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    return JsonNumber(value);
  } else {
    return FieldText(value, ',');
  }
}

/// The part of a tensor from `*next` on that has these dimensions.
template <typename T>
void AppendNested(absl::Span<const int64_t> dims, const T** next, std::string* text) {
  if (dims.empty()) {
    text->append(JsonText(*(*next)++));
    return;
  }
  text->push_back('[');
  for (int64_t i = 0; i < dims[0]; ++i) {
    if (i > 0) text->append(", ");
    AppendNested(dims.subspan(1), next, text);
  }
  text->push_back(']');
}

Status NoTextForm(const Tensor& tensor) {
  return InvalidArgument("values of ", ToString(tensor.dtype()), " have no text form");
}

}  // namespace

Status AppendRow(const Tensor& tensor, int64_t row, char delimiter, std::string* line) {
  const int64_t rows = tensor.rank() == 0 ? 1 : tensor.dim(0);
  const int64_t cells = rows == 0 ? 0 : tensor.num_elements() / rows;
  const bool known = Dispatch(tensor.dtype(), ElementTypes(), [&](auto zero) {
    const auto* const elements = tensor.data<decltype(zero)>() + row * cells;
    for (int64_t i = 0; i < cells; ++i) {
      if (i > 0) line->push_back(delimiter);
      line->append(FieldText(elements[i], delimiter));
    }
  });
  return known ? OkStatus() : NoTextForm(tensor);
}

Status AppendJson(const Tensor& tensor, std::string* text) {
  const bool known = Dispatch(tensor.dtype(), ElementTypes(), [&](auto zero) {
    const auto* next = tensor.data<decltype(zero)>();
    AppendNested(tensor.shape().dims(), &next, text);
  });
  return known ? OkStatus() : NoTextForm(tensor);
}

}  // namespace tenon::tools
