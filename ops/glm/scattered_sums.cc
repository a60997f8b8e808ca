// SPDX-License-Identifier: Apache-2.0
#include "ops/glm/scattered_sums.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace tenon {
namespace {

constexpr int kMostAtOnce = 8;
/// Rows of up to so many vectors have loops of their own, in which the compiler keeps them in
/// registers.
constexpr int kMostVectors = 5;

/// Numbers that are added by one instruction where the processor has one for four; the compiler's
/// vectors, since Eigen's products with a number went through memory.
using Vector = double __attribute__((vector_size(kRowUnit * sizeof(double))));

Vector Load(const double* from) {
  Vector vector;
  std::memcpy(&vector, from, sizeof(vector));
  return vector;
}
void Store(Vector vector, double* to) { std::memcpy(to, &vector, sizeof(vector)); }

template <int kVectors>
void AddShortRows(absl::Span<const RowTarget> targets, int64_t count, const double* rows) {
  for (int64_t r = 0; r < count; ++r) {
    std::array<Vector, kVectors> row;
    for (int v = 0; v < kVectors; ++v) row[v] = Load(rows + kRowUnit * v);
    for (const RowTarget& t : targets) {
      double* const to = t.sums + t.places[r];
      const double factor = t.factors[r];
      for (int v = 0; v < kVectors; ++v) {
        Store(Load(to + kRowUnit * v) + factor * row[v], to + kRowUnit * v);
      }
    }
    rows += kVectors * kRowUnit;
  }
}

void AddLongRows(absl::Span<const RowTarget> targets, int64_t count, int64_t width,
                 const double* rows) {
  for (int64_t r = 0; r < count; ++r, rows += width) {
    for (const RowTarget& t : targets) {
      double* const to = t.sums + t.places[r];
      const double factor = t.factors[r];
      for (int64_t v = 0; v < width; v += kRowUnit) {
        Store(Load(to + v) + factor * Load(rows + v), to + v);
      }
    }
  }
}

using RowsAdder = void (*)(absl::Span<const RowTarget> targets, int64_t count, const double* rows);

template <int... kCounts>
constexpr std::array<RowsAdder, sizeof...(kCounts)> RowsAdders(
    std::integer_sequence<int, kCounts...>) {
  return {AddShortRows<kCounts + 1>...};
}

template <int kLeft>
void AddSomeProducts(double* sums, int64_t count, int64_t width, const double* const* left,
                     const double* rows) {
  for (int64_t v = 0; v < width; v += kRowUnit) {
    // Sums of rows with even and with odd numbers: an addition waits for the one before.
    std::array<Vector, kLeft> even = {}, odd = {};
    int64_t r = 0;
    for (; r + 1 < count; r += 2) {
      const Vector row = Load(rows + r * width + v), next = Load(rows + (r + 1) * width + v);
      for (int l = 0; l < kLeft; ++l) {
        even[l] += left[l][r] * row;
        odd[l] += left[l][r + 1] * next;
      }
    }
    if (r < count) {
      for (int l = 0; l < kLeft; ++l) even[l] += left[l][r] * Load(rows + r * width + v);
    }
    for (int l = 0; l < kLeft; ++l) {
      double* const to = sums + l * width + v;
      Store(Load(to) + even[l] + odd[l], to);
    }
  }
}

using ProductsAdder = void (*)(double* sums, int64_t count, int64_t width,
                               const double* const* left, const double* rows);

template <int... kCounts>
constexpr std::array<ProductsAdder, sizeof...(kCounts)> ProductsAdders(
    std::integer_sequence<int, kCounts...>) {
  return {AddSomeProducts<kCounts + 1>...};
}

template <int... kTargets>
void AddSomeNumbers(const NumberTarget* targets, int64_t count,
                    std::integer_sequence<int, kTargets...>) {
  // Copies, because the sums might lie over the targets as far as the compiler knows.
  const std::array<NumberTarget, sizeof...(kTargets)> own = {targets[kTargets]...};
  for (int64_t r = 0; r < count; ++r) {
    ((own[kTargets].sums[own[kTargets].places[r]] += own[kTargets].numbers[r]), ...);
  }
}

template <int kCount>
void AddCountedNumbers(const NumberTarget* targets, int64_t count) {
  AddSomeNumbers(targets, count, std::make_integer_sequence<int, kCount>());
}

using NumbersAdder = void (*)(const NumberTarget* targets, int64_t count);

template <int... kCounts>
constexpr std::array<NumbersAdder, sizeof...(kCounts)> NumbersAdders(
    std::integer_sequence<int, kCounts...>) {
  return {AddCountedNumbers<kCounts + 1>...};
}

}  // namespace

void AddRowsTo(absl::Span<const RowTarget> targets, int64_t count, int64_t width,
               const double* rows) {
  static constexpr auto kAdders = RowsAdders(std::make_integer_sequence<int, kMostVectors>());
  if (width > kMostVectors * kRowUnit) return AddLongRows(targets, count, width, rows);
  kAdders[width / kRowUnit - 1](targets, count, rows);
}

void AddProductsTo(double* sums, int64_t count, int64_t width, absl::Span<const double* const> left,
                   const double* rows) {
  static constexpr auto kAdders = ProductsAdders(std::make_integer_sequence<int, kMostAtOnce>());
  const size_t groups = (left.size() + kMostAtOnce - 1) / kMostAtOnce;
  for (size_t g = 0; g < groups; ++g) {
    const size_t begin = g * left.size() / groups, end = (g + 1) * left.size() / groups;
    kAdders[end - begin - 1](sums + begin * width, count, width, &left[begin], rows);
  }
}

void AddNumbersTo(absl::Span<const NumberTarget> targets, int64_t count) {
  static constexpr auto kAdders = NumbersAdders(std::make_integer_sequence<int, kMostAtOnce>());
  while (!targets.empty()) {
    const size_t now = std::min<size_t>(targets.size(), kMostAtOnce);
    kAdders[now - 1](targets.data(), count);
    targets.remove_prefix(now);
  }
}

}  // namespace tenon
