// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/dtype.h"

#include <array>

#include "core/base/strings.h"

namespace tenon {
namespace {

struct DTypeInfo {
  std::string_view name;
  size_t size;
};

constexpr std::array<DTypeInfo, kNumDTypes> kInfo = {{
    {"invalid", 0},
    {"float", 4},
    {"double", 8},
    {"int32", 4},
    {"uint8", 1},
    {"int16", 2},
    {"int8", 1},
    {"string", 0},
    {"complex64", 8},
    {"int64", 8},
    {"bool", 1},
    {"qint8", 1},
    {"quint8", 1},
    {"qint32", 4},
    {"bfloat16", 2},
    {"qint16", 2},
    {"quint16", 2},
    {"uint16", 2},
    {"complex128", 16},
    {"half", 2},
    {"resource", 0},
    {"variant", 0},
    {"uint32", 4},
    {"uint64", 8},
    {"float8_e5m2", 1},
    {"float8_e4m3fn", 1},
    {"float8_e4m3fnuz", 1},
    {"float8_e4m3b11fnuz", 1},
    {"float8_e5m2fnuz", 1},
    {"int4", 1},
    {"uint4", 1},
    {"int2", 1},
    {"uint2", 1},
}};

}  // namespace

size_t SizeOf(DType t) {
  const int number = static_cast<int>(BaseType(t));
  return number < kNumDTypes ? kInfo[number].size : 0;
}

bool IsFloating(DType t) {
  switch (BaseType(t)) {
    case DType::kFloat:
    case DType::kDouble:
    case DType::kHalf:
    case DType::kBFloat16:
      return true;
    default:
      return false;
  }
}

bool IsInteger(DType t) {
  switch (BaseType(t)) {
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kUInt8:
    case DType::kUInt16:
    case DType::kUInt32:
    case DType::kUInt64:
      return true;
    default:
      return false;
  }
}

bool IsComplex(DType t) {
  return BaseType(t) == DType::kComplex64 || BaseType(t) == DType::kComplex128;
}

std::string ToString(DType t) {
  const int number = static_cast<int>(BaseType(t));
  if (number >= kNumDTypes) return StrCat("dtype(", static_cast<int>(t), ")");
  return StrCat(kInfo[number].name, IsRef(t) ? "_ref" : "");
}

std::optional<DType> ParseDType(std::string_view name) {
  if (name.ends_with("_ref") || name.ends_with("_REF")) {
    const auto base = ParseDType(name.substr(0, name.size() - 4));
    if (!base) return std::nullopt;
    return MakeRef(*base);
  }
  std::string lower;
  if (name.starts_with("DT_")) {
    for (const char c : name.substr(3)) lower += static_cast<char>(std::tolower(c));
    name = lower;
  }
  if (name == "float32") return DType::kFloat;
  if (name == "float64") return DType::kDouble;
  if (name == "float16") return DType::kHalf;
  for (int i = 1; i < kNumDTypes; ++i) {
    if (kInfo[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::optional<DType> DTypeFromNumber(int number) {
  const int base = number > 100 ? number - 100 : number;
  if (base < 0 || base >= kNumDTypes || (base == 0 && number != 0)) return std::nullopt;
  return static_cast<DType>(number);
}

}  // namespace tenon
