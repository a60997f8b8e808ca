// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "ops/broadcast.h"
#include "ops/maths.h"

// Where the elements of tensors that are walked together lie: the arithmetic of kernels that
// broadcast, transpose, slice and reduce. Plain C++, so that it is tested on the host.

namespace tenon::cuda {

/// Divides numbers that are not negative by one that is known before: by a multiplication as long
/// as both are below 2^31 (Granlund and Montgomery, Division by invariant integers using
/// multiplication, 1994).
class Divisor {
 public:
  Divisor() = default;
  /// `value` is at least 1, and what is divided at most `most`.
  Divisor(int64_t value, int64_t most) : value_(value), small_(most < (int64_t{1} << 31)) {
    if (!small_) return;
    // A larger one than all that is divided always gives 0, as `most` + 1 does.
    if (value_ > most + 1) value_ = most + 1;
    while ((uint64_t{1} << shift_) < static_cast<uint64_t>(value_)) ++shift_;
    const uint64_t power = uint64_t{1} << shift_, d = static_cast<uint64_t>(value_);
    magic_ = static_cast<uint32_t>((((power - d) << 32) / d) + 1);
  }

  TENON_HD int64_t Quotient(int64_t n) const {
    if (!small_) return static_cast<int64_t>(static_cast<uint64_t>(n) / value_);
    const auto low = static_cast<uint32_t>(n);
    const auto high = static_cast<uint32_t>((uint64_t{low} * magic_) >> 32);
    return (high + low) >> shift_;
  }
  TENON_HD int64_t value() const { return value_; }

 private:
  int64_t value_ = 1;
  uint32_t magic_ = 1;
  uint32_t shift_ = 0;
  bool small_ = true;
};

/// One dimension of a box that several operands are walked over.
template <int kOperands>
struct StridedDim {
  int64_t size;
  int64_t strides[kOperands];  // in elements
};

/// The offsets, one an operand, of element `i` of a box, which is counted in row-major order.
template <int kOperands>
class StridedIndex {
 public:
  static constexpr int kMaxRank = 10;

  StridedIndex() = default;
  /// `dims`, the outermost first, are at least one and at most kMaxRank. Elements are numbered
  /// below `count`.
  StridedIndex(absl::Span<const StridedDim<kOperands>> dims, int64_t count)
      : rank_(static_cast<int>(dims.size())) {
    for (int d = 0; d < rank_; ++d) {
      // Boxes without elements are not walked.
      sizes_[d] = Divisor(dims[d].size > 0 ? dims[d].size : 1, count);
      for (int k = 0; k < kOperands; ++k) strides_[d][k] = dims[d].strides[k];
    }
  }

  TENON_HD void At(int64_t i, int64_t (&offsets)[kOperands]) const {
    for (int k = 0; k < kOperands; ++k) offsets[k] = 0;
    for (int d = rank_ - 1; d > 0; --d) {
      const int64_t rest = sizes_[d].Quotient(i);
      const int64_t at = i - rest * sizes_[d].value();
      for (int k = 0; k < kOperands; ++k) offsets[k] += at * strides_[d][k];
      i = rest;
    }
    for (int k = 0; k < kOperands; ++k) offsets[k] += i * strides_[0][k];
  }

  int rank() const { return rank_; }

 private:
  int rank_ = 1;
  Divisor sizes_[kMaxRank];
  int64_t strides_[kMaxRank][kOperands] = {};
};

/// Unimplemented when there are more dimensions than a StridedIndex holds.
inline Status CheckIndexRank(size_t rank) {
  constexpr int kMost = StridedIndex<1>::kMaxRank;
  if (rank <= kMost) return OkStatus();
  return Unimplemented("more than ", kMost, " dimensions that cannot be walked as one: ", rank);
}

/// How operands are broadcast, as kernels walk them.
template <int kOperands>
struct BroadcastIndex {
  StridedIndex<kOperands> index;
  int64_t count = 0;
  /// Whether elements may be taken `pack` at a time: in groups of that many, which begin at
  /// multiples of it, every operand has either neighbours or one element, and a group of neighbours
  /// begins at a multiple of `pack`, too.
  bool packs = false;
  bool repeats[kOperands] = {};  // whether the operand has one element in a group
};

template <int kOperands>
StatusOr<BroadcastIndex<kOperands>> IndexBroadcast(const BroadcastPlan& plan, int64_t pack) {
  TENON_RETURN_IF_ERROR(CheckIndexRank(plan.dims.size()));
  absl::InlinedVector<StridedDim<kOperands>, 4> dims;
  BroadcastIndex<kOperands> result;
  const bool line = plan.dims.size() == 1;
  result.packs = line || plan.inner().size % pack == 0;
  result.count = 1;
  for (const BroadcastPlan::Dim& d : plan.dims) {
    StridedDim<kOperands> dim{d.size, {}};
    for (int k = 0; k < kOperands; ++k) {
      dim.strides[k] = d.strides[k];
      const bool is_inner = &d == &plan.inner();
      if (is_inner) result.repeats[k] = d.strides[k] == 0;
      if (!is_inner && plan.inner().strides[k] != 0) result.packs &= d.strides[k] % pack == 0;
    }
    dims.push_back(dim);
    result.count *= d.size;
  }
  result.index = StridedIndex<kOperands>(dims, result.count);
  return result;
}

}  // namespace tenon::cuda
