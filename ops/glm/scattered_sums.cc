// SPDX-License-Identifier: Apache-2.0
#include "ops/glm/scattered_sums.h"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <utility>

namespace tenon {
namespace {

/// Rows up to this width have a loop of their own, whose sums the compiler keeps in registers.
constexpr int kMostWidth = 16;
constexpr int kMostAtOnce = 8;

template <int kWidth>
void AddNarrowRows(absl::Span<const RowTarget> targets, int64_t count, const double* rows) {
  using Row = Eigen::Array<double, kWidth, 1>;
  for (int64_t r = 0; r < count; ++r) {
    const Row row = Eigen::Map<const Row>(rows + r * kWidth);
    for (const RowTarget& t : targets) {
      Eigen::Map<Row>(t.sums + t.places[r]) += t.factors[r] * row;
    }
  }
}

void AddWideRows(absl::Span<const RowTarget> targets, int64_t count, int64_t width,
                 const double* rows) {
  using Row = Eigen::ArrayXd;
  for (int64_t r = 0; r < count; ++r) {
    const Eigen::Map<const Row> row(rows + r * width, width);
    for (const RowTarget& t : targets) {
      Eigen::Map<Row>(t.sums + t.places[r], width) += t.factors[r] * row;
    }
  }
}

using NarrowAdder = void (*)(absl::Span<const RowTarget> targets, int64_t count,
                             const double* rows);

template <int... kWidths>
constexpr std::array<NarrowAdder, sizeof...(kWidths)> NarrowAdders(
    std::integer_sequence<int, kWidths...>) {
  return {AddNarrowRows<kWidths + 1>...};
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
  static constexpr auto kAdders = NarrowAdders(std::make_integer_sequence<int, kMostWidth>());
  if (width > kMostWidth) return AddWideRows(targets, count, width, rows);
  kAdders[width - 1](targets, count, rows);
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
