// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/tensor/tensor.h"
#include "ops/maths.h"

namespace tenon::cuda {

/// Indices of int16, int32 or int64, or of the 8-bit integers, as int64.
class IndexReader {
 public:
  IndexReader() = default;
  explicit IndexReader(const Tensor& indices)
      : data_(indices.raw_data()),
        bytes_(static_cast<int>(SizeOf(indices.dtype()))),
        is_unsigned_(indices.dtype() == DType::kUInt8 || indices.dtype() == DType::kUInt16) {}

  TENON_HD int64_t operator[](int64_t i) const {
    if (bytes_ == 8) return static_cast<const int64_t*>(data_)[i];
    if (bytes_ == 4) return static_cast<const int32_t*>(data_)[i];
    if (bytes_ == 2) {
      const int16_t value = static_cast<const int16_t*>(data_)[i];
      return is_unsigned_ ? static_cast<uint16_t>(value) : value;
    }
    const int8_t value = static_cast<const int8_t*>(data_)[i];
    return is_unsigned_ ? static_cast<uint8_t>(value) : value;
  }

 private:
  const void* data_ = nullptr;
  int bytes_ = 8;
  bool is_unsigned_ = false;
};

/// What a kernel notes in its word (see AddCheck) of an index that it cannot use: where it stands
/// and its value, as far as 31 and 32 bits hold them. A noted word is not 0.
struct IndexNote {
  int64_t place, value;
};
TENON_HD inline uint64_t WordOf(IndexNote note) {
  constexpr int64_t kMost = INT32_MAX, kLeast = INT32_MIN;
  const int64_t place = note.place > kMost ? kMost : note.place;
  const int64_t value = note.value > kMost ? kMost : note.value < kLeast ? kLeast : note.value;
  return uint64_t{1} << 63 | static_cast<uint64_t>(place) << 32 | static_cast<uint32_t>(value);
}
inline IndexNote NotedIndex(uint64_t word) {
  return {static_cast<int64_t>(word >> 32 & INT32_MAX),
          static_cast<int32_t>(static_cast<uint32_t>(word))};
}

}  // namespace tenon::cuda
