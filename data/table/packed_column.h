// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <variant>

#include "absl/types/span.h"
#include "core/memory/counted_memory.h"

namespace tenon {

/// Numbers or codes of a column, in the narrowest form that loses nothing: whole numbers of 8, 16
/// or 32 bits, which for numbers with few decimals are divided by a power of ten, or doubles. Never
/// changed; read by any thread.
class PackedColumn {
 public:
  PackedColumn() = default;
  /// Numbers, where NaN is a missing one.
  static PackedColumn OfNumbers(absl::Span<const double> numbers);
  /// Codes from 0 on, where -1 is a missing one.
  static PackedColumn OfCodes(absl::Span<const int32_t> codes);

  int64_t size() const;
  int64_t bytes() const;
  /// Writes `count` values from `begin` on. REQUIRES: the column is one of numbers.
  void CopyNumbers(int64_t begin, int64_t count, double* out) const;
  /// REQUIRES: the column is one of codes.
  void CopyCodes(int64_t begin, int64_t count, int32_t* out) const;
  /// Has the processor load `count` values from `begin` on, which are soon to be copied.
  void Prefetch(int64_t begin, int64_t count) const;

 private:
  std::variant<CountedVector<int8_t>, CountedVector<int16_t>, CountedVector<int32_t>,
               CountedVector<double>>
      values_;
  double divisor_ = 1;  // of whole numbers
};

}  // namespace tenon
