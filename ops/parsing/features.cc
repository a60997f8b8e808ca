// SPDX-License-Identifier: Apache-2.0
#include "ops/parsing/features.h"

namespace tenon {
namespace {

using ValueTypes = TypeList<TString, float, int64_t>;

}  // namespace

bool TakeField(std::string_view* message, WireField* field) {
  uint64_t tag, size;
  if (!TakeVarint(message, &tag)) return false;
  field->number = tag >> 3;
  field->type = static_cast<WireType>(tag & 7);
  field->bytes = {};
  switch (field->type) {
    case WireType::kVarint:
      return field->number != 0 && TakeVarint(message, &field->varint);
    case WireType::kFixed64:
      size = 8;
      break;
    case WireType::kFixed32:
      size = 4;
      break;
    case WireType::kBytes:
      if (!TakeVarint(message, &size)) return false;
      break;
    default:
      return false;
  }
  if (field->number == 0 || size > message->size()) return false;
  field->bytes = message->substr(0, size);
  message->remove_prefix(size);
  return true;
}

bool ReadFeature(std::string_view message, FeatureValues* feature) {
  *feature = {};
  if (message.empty()) return true;
  WireField field;
  if (!TakeField(&message, &field) || field.type != WireType::kBytes) return false;
  if (field.number < 1 || field.number > 3) return false;
  feature->type = field.number == 1   ? DType::kString
                  : field.number == 2 ? DType::kFloat
                                      : DType::kInt64;
  feature->list = field.bytes;
  bool read = false;
  Dispatch(feature->type, ValueTypes(), [&]<typename T>(T) {
    read = ForEachValue<T>(feature->list, [&](const auto&) { ++feature->count; });
  });
  return read;
}

void WriteValues(const FeatureValues& feature, Tensor* out, int64_t at) {
  Dispatch(feature.type, ValueTypes(), [&]<typename T>(T) {
    T* to = out->data<T>() + at;
    ForEachValue<T>(feature.list, [&](const auto& value) { *to++ = T(value); });
  });
}

}  // namespace tenon
