// SPDX-License-Identifier: Apache-2.0
#include "data/table/packed_column.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace tenon {
namespace {

constexpr double kMostDecimals = 1e6;
constexpr double kLargest = std::numeric_limits<int32_t>::max();
/// Numbers that are looked at with one factor before another one is tried.
constexpr size_t kLookedAt = 1024;

/// The whole number that is next to number * factor, if 32 bits hold it; for NaN, 0.
int32_t NextWhole(double number, double factor) {
  const double rounded = std::nearbyint(number * factor);
  const double within = std::min(std::max(rounded, -kLargest), kLargest);
  return static_cast<int32_t>(number == number ? within : 0);
}

/// `whole` divided by `factor`, of which `inverse` is 1 / factor: the quotient's remainder corrects
/// it (Markstein 1990), in a third of a division's time. Who packs numbers sees that it is right.
double Quotient(double whole, double factor, double inverse) {
  const double quotient = whole * inverse;
  return std::fma(std::fma(-quotient, factor, whole), inverse, quotient);
}

/// Whether all numbers are whole ones divided by `factor`, bit for bit (there is no whole minus
/// zero). A loop without branches, which the compiler makes one of vectors.
bool AreWhole(absl::Span<const double> numbers, double factor) {
  const double inverse = 1 / factor;
  uint64_t different = 0;
  for (const double number : numbers) {
    const double back = Quotient(static_cast<double>(NextWhole(number, factor)), factor, inverse);
    const bool same = std::bit_cast<uint64_t>(back) == std::bit_cast<uint64_t>(number);
    different |= static_cast<uint64_t>(!same & (number == number));
  }
  return different == 0;
}

/// The least power of ten with which all numbers are whole ones; 0 when there is none.
double FactorOf(absl::Span<const double> numbers) {
  double factor = 1;
  for (size_t i = 0; i < numbers.size(); i += kLookedAt) {
    while (!AreWhole(numbers.subspan(i, kLookedAt), factor)) {
      if (factor == kMostDecimals) return 0;
      factor *= 10;
    }
  }
  return factor;
}

/// The largest magnitude; 0 without numbers.
double LargestOf(absl::Span<const double> numbers) {
  double largest = 0;
  for (const double number : numbers) largest = std::max(largest, std::abs(number));
  return largest;
}

template <typename T>
CountedVector<T> Scaled(absl::Span<const double> numbers, double factor) {
  CountedVector<T> values(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    const bool missing = std::isnan(numbers[i]);
    values[i] =
        missing ? std::numeric_limits<T>::min() : static_cast<T>(NextWhole(numbers[i], factor));
  }
  return values;
}

/// Has the lines of values fetched that are wanted after some others: who reads some rows of one
/// column after the other does what no processor foresees.
template <typename T>
void FetchAhead(const CountedVector<T>& values, int64_t begin, int64_t count) {
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));
  const int64_t end = std::min(begin + count, static_cast<int64_t>(values.size()));
  for (int64_t i = begin; i < end; i += kLine) __builtin_prefetch(values.data() + i);
}

}  // namespace

PackedColumn PackedColumn::OfNumbers(absl::Span<const double> numbers) {
  PackedColumn column;
  const double factor = FactorOf(numbers);
  const double largest = std::nearbyint(LargestOf(numbers) * factor);
  // Numbers that were looked at with a smaller factor may be too large with the last one.
  if (factor == 0 || largest > kLargest) {
    column.values_ = CountedVector<double>(numbers.begin(), numbers.end());
    return column;
  }
  column.divisor_ = factor;
  if (largest <= std::numeric_limits<int8_t>::max()) {
    column.values_ = Scaled<int8_t>(numbers, factor);
  } else if (largest <= std::numeric_limits<int16_t>::max()) {
    column.values_ = Scaled<int16_t>(numbers, factor);
  } else {
    column.values_ = Scaled<int32_t>(numbers, factor);
  }
  return column;
}

PackedColumn PackedColumn::OfCodes(absl::Span<const int32_t> codes) {
  PackedColumn column;
  const int32_t largest = codes.empty() ? 0 : *std::max_element(codes.begin(), codes.end());
  if (largest <= std::numeric_limits<int8_t>::max()) {
    column.values_ = CountedVector<int8_t>(codes.begin(), codes.end());
  } else if (largest <= std::numeric_limits<int16_t>::max()) {
    column.values_ = CountedVector<int16_t>(codes.begin(), codes.end());
  } else {
    column.values_ = CountedVector<int32_t>(codes.begin(), codes.end());
  }
  return column;
}

int64_t PackedColumn::size() const {
  return std::visit([](const auto& v) { return static_cast<int64_t>(v.size()); }, values_);
}

int64_t PackedColumn::bytes() const {
  return std::visit([](const auto& v) { return static_cast<int64_t>(v.size() * sizeof(v[0])); },
                    values_);
}

void PackedColumn::CopyNumbers(int64_t begin, int64_t count, double* out) const {
  const double divisor = divisor_, inverse = 1 / divisor_;
  std::visit(
      [&]<typename T>(const CountedVector<T>& values) {
        const T* const from = values.data() + begin;
        FetchAhead(values, begin + count, count);
        if constexpr (std::is_floating_point_v<T>) {
          std::copy_n(from, count, out);
        } else {
          for (int64_t i = 0; i < count; ++i) {
            const double value = Quotient(static_cast<double>(from[i]), divisor, inverse);
            const bool missing = from[i] == std::numeric_limits<T>::min();
            out[i] = missing ? std::numeric_limits<double>::quiet_NaN() : value;
          }
        }
      },
      values_);
}

void PackedColumn::Prefetch(int64_t begin, int64_t count) const {
  std::visit(
      [&](const auto& values) {
        __builtin_prefetch(values.data() + begin);
        __builtin_prefetch(values.data() + begin + count - 1);
      },
      values_);
}

void PackedColumn::CopyCodes(int64_t begin, int64_t count, int32_t* out) const {
  std::visit(
      [&](const auto& values) {
        const auto* const from = values.data() + begin;
        FetchAhead(values, begin + count, count);
        for (int64_t i = 0; i < count; ++i) out[i] = static_cast<int32_t>(from[i]);
      },
      values_);
}

}  // namespace tenon
