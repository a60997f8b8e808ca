// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <string_view>

#include "core/base/varint.h"
#include "core/tensor/tensor.h"

// Reading serialized Example and SequenceExample messages (proto/example.proto) where they lie,
// without making objects of them. The bytes come from outside: every reader says whether it could
// read them, and never looks past their end.

namespace tenon {

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

/// One field of a serialized message.
struct WireField {
  uint64_t number = 0;
  WireType type = WireType::kVarint;
  uint64_t varint = 0;
  std::string_view bytes;  // of the other types
};

/// Takes the next field off the front of `*message`; false when there is none that can be read.
bool TakeField(std::string_view* message, WireField* field);

/// Calls `fn(key, value)` for each entry of the map in field 1 of each message in field `number` of
/// `message`, in order; values are serialized messages. False when that cannot be read.
template <typename Fn>
bool ForEachEntry(std::string_view message, uint64_t number, Fn fn) {
  WireField map, entry, part;
  while (!message.empty()) {
    if (!TakeField(&message, &map)) return false;
    if (map.number != number || map.type != WireType::kBytes) continue;
    while (!map.bytes.empty()) {
      if (!TakeField(&map.bytes, &entry)) return false;
      if (entry.number != 1 || entry.type != WireType::kBytes) continue;
      std::string_view key, value = entry.bytes.substr(entry.bytes.size());
      while (!entry.bytes.empty()) {
        if (!TakeField(&entry.bytes, &part)) return false;
        if (part.number == 1 && part.type == WireType::kBytes) key = part.bytes;
        if (part.number == 2 && part.type == WireType::kBytes) value = part.bytes;
      }
      fn(key, value);
    }
  }
  return true;
}

/// Calls `fn` with each value of a serialized BytesList, FloatList or Int64List: a string_view, a
/// float or an int64_t, as T is TString or these. False when it cannot be read.
template <typename T, typename Fn>
bool ForEachValue(std::string_view list, Fn fn) {
  WireField field;
  while (!list.empty()) {
    if (!TakeField(&list, &field)) return false;
    if (field.number != 1) continue;
    if constexpr (std::is_same_v<T, TString>) {
      if (field.type != WireType::kBytes) return false;
      fn(field.bytes);
    } else if constexpr (std::is_same_v<T, float>) {
      const bool one = field.type == WireType::kFixed32, many = field.type == WireType::kBytes;
      if (!(one || many) || field.bytes.size() % sizeof(float) != 0) return false;
      for (size_t i = 0; i < field.bytes.size(); i += sizeof(float)) {
        float value;
        std::memcpy(&value, field.bytes.data() + i, sizeof(float));
        fn(value);
      }
    } else if (field.type == WireType::kVarint) {
      fn(static_cast<int64_t>(field.varint));
    } else {
      if (field.type != WireType::kBytes) return false;
      for (uint64_t value; !field.bytes.empty(); fn(static_cast<int64_t>(value))) {
        if (!TakeVarint(&field.bytes, &value)) return false;
      }
    }
  }
  return true;
}

/// A serialized Feature message that was looked through: ForEachValue can read its list.
struct FeatureValues {
  DType type = DType::kInvalid;  // string, float or int64; invalid: it has no values of any type
  std::string_view list;
  int64_t count = 0;
};
/// False when `message` cannot be read.
bool ReadFeature(std::string_view message, FeatureValues* feature);

/// Makes the values of `feature` the elements of `out` from number `at` on. REQUIRES: the same
/// type.
void WriteValues(const FeatureValues& feature, Tensor* out, int64_t at);

}  // namespace tenon
