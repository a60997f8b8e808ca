// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "ops/array/strided_copy.h"
#include "ops/cuda/strided_index.h"

namespace tenon::cuda {

/// Edges of the squares in which two axes are transposed.
inline constexpr int64_t kTile = 32;

/// How a box of a StridedCopy is copied. Operand 0 of the indices is the source, 1 the target;
/// their elements are `bytes` long, which may be several of the tensors' ones.
struct CopyPlan {
  enum class Kind { kNothing, kRun, kTiles, kElements };
  Kind kind = Kind::kNothing;
  int64_t bytes = 0;
  /// Bytes from the tensors' beginnings to the first element of the box.
  int64_t from = 0, to = 0;
  /// Elements; for kTiles, planes, which `index` finds.
  int64_t count = 0;
  StridedIndex<2> index;
  /// The axes of a plane of kTiles: along the first the source's elements are neighbours, along the
  /// second the target's.
  CopyAxis first{1, 1, 1}, second{1, 1, 1};

  int64_t tiles_along_first() const { return (first.size + kTile - 1) / kTile; }
  int64_t tiles_along_second() const { return (second.size + kTile - 1) / kTile; }
};

/// How many elements of `size` bytes may be taken as one of up to 16 bytes: as many lie together in
/// both tensors, wherever the box has some, and at multiples of their bytes.
inline int64_t WidestElement(const CopyAxes& axes, int64_t size, int64_t from, int64_t to) {
  const CopyAxis& inner = axes.back();
  if (inner.from != 1 || inner.to != 1) return 1;
  int64_t together = 1;
  for (int64_t n = 2; n * size <= 16; n *= 2) {
    const int64_t bytes = n * size;
    bool fits = inner.size % n == 0 && from % bytes == 0 && to % bytes == 0;
    for (size_t i = 0; i + 1 < axes.size(); ++i) {
      fits &= axes[i].from % n == 0 && axes[i].to % n == 0;
    }
    if (fits) together = n;
  }
  return together;
}

/// Plans to copy a box of elements of `size` bytes; `from_address` and `to_address` say where the
/// tensors begin. Unimplemented for a box of too many axes.
inline StatusOr<CopyPlan> PlanCopy(int64_t size, uint64_t from_address, uint64_t to_address,
                                   const StridedView& source, const StridedView& target,
                                   absl::Span<const int64_t> dims) {
  CopyPlan plan;
  // Before anything is multiplied: beside a 0 the others may be of any size.
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return plan;
  CopyAxes axes = SimplifiedAxes(dims, source, target);
  plan.bytes = size;
  plan.from = source.offset * size;
  plan.to = target.offset * size;
  CopyAxis& inner = axes.back();
  if (axes.size() == 1 && inner.from == 1 && inner.to == 1) {
    plan.kind = CopyPlan::Kind::kRun;
    plan.count = inner.size;
    return plan;
  }
  const auto neighbours =
      std::find_if(axes.begin(), axes.end() - 1, [](const CopyAxis& a) { return a.from == 1; });
  constexpr int64_t kWorthTiles = 8;
  if (neighbours != axes.end() - 1 && inner.to == 1 && inner.from != 1 && inner.from != 0 &&
      neighbours->size >= kWorthTiles && inner.size >= kWorthTiles) {
    plan.kind = CopyPlan::Kind::kTiles;
    plan.first = *neighbours;
    plan.second = inner;
    axes.pop_back();
    axes.erase(neighbours);
  } else {
    plan.kind = CopyPlan::Kind::kElements;
    const int64_t together =
        WidestElement(axes, size, static_cast<int64_t>((from_address + plan.from) % 16),
                      static_cast<int64_t>((to_address + plan.to) % 16));
    inner.size /= together;
    for (size_t i = 0; i + 1 < axes.size(); ++i) {
      axes[i].from /= together;
      axes[i].to /= together;
    }
    plan.bytes *= together;
  }
  TENON_RETURN_IF_ERROR(CheckIndexRank(axes.size()));
  absl::InlinedVector<StridedDim<2>, 6> walked;
  plan.count = 1;
  for (const CopyAxis& a : axes) {
    walked.push_back({a.size, {a.from, a.to}});
    plan.count *= a.size;
  }
  if (walked.empty()) walked.push_back({1, {0, 0}});
  plan.index = StridedIndex<2>(walked, plan.count);
  return plan;
}

}  // namespace tenon::cuda
