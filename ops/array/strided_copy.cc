// SPDX-License-Identifier: Apache-2.0
#include "ops/array/strided_copy.h"

#include <algorithm>

#include "core/base/interruption.h"
#include "core/base/parallel.h"
#include "ops/arguments.h"
#include "ops/elements.h"
#include "ops/maths.h"

namespace tenon {
namespace {

using Axis = CopyAxis;
using Axes = CopyAxes;

/// A call takes longer than copying so few elements.
constexpr int64_t kShortLine = 4;

template <typename T>
void CopyLine(const T* from, T* to, const Axis& a) {
  if (a.from == 1 && a.to == 1 && a.size > kShortLine) {
    std::copy(from, from + a.size, to);
  } else if (a.from == 0 && a.to == 1) {
    std::fill_n(to, a.size, *from);
  } else if (a.from == -1 && a.to == 1 && std::is_trivially_copyable_v<T>) {
    TENON_SIMD
    for (int64_t i = 0; i < a.size; ++i) to[i] = from[-i];
  } else {
    for (int64_t i = 0; i < a.size; ++i) to[i * a.to] = from[i * a.from];
  }
}

/// Two axes where one side is contiguous along the first and the other along the second: in tiles,
/// so that the cache lines of both sides are used whole.
template <typename T>
void CopyTiles(const T* from, T* to, const Axis& a, const Axis& b) {
  constexpr int64_t kTile = 16;
  for (int64_t i0 = 0; i0 < a.size; i0 += kTile) {
    const int64_t i1 = std::min(i0 + kTile, a.size);
    if (Interrupted()) return;
    for (int64_t j0 = 0; j0 < b.size; j0 += kTile) {
      const int64_t j1 = std::min(j0 + kTile, b.size);
      for (int64_t i = i0; i < i1; ++i) {
        for (int64_t j = j0; j < j1; ++j) {
          to[i * a.to + j * b.to] = from[i * a.from + j * b.from];
        }
      }
    }
  }
}

template <typename T>
void CopyBox(const T* from, T* to, absl::Span<const Axis> axes) {
  const size_t last = axes.size() - 1;
  const bool plane = last > 0 && axes[last].from != 1 && axes[last - 1].from == 1;
  // An odometer over the outer axes; recursion would be as deep as the rank.
  const int outer = static_cast<int>(plane ? last - 1 : last);
  absl::InlinedVector<int64_t, 6> at(outer, 0);
  for (int64_t lines = 1;; ++lines) {
    if (lines % kStepsBetweenLooks == 0 && Interrupted()) return;
    if (plane) {
      CopyTiles(from, to, axes[last - 1], axes[last]);
    } else {
      CopyLine(from, to, axes[last]);
    }
    int k = outer - 1;
    for (; k >= 0; --k) {
      from += axes[k].from;
      to += axes[k].to;
      if (++at[k] < axes[k].size) break;
      from -= axes[k].from * axes[k].size;
      to -= axes[k].to * axes[k].size;
      at[k] = 0;
    }
    if (k < 0) return;
  }
}

}  // namespace

CopyAxes SimplifiedAxes(absl::Span<const int64_t> dims, const StridedView& source,
                        const StridedView& target) {
  CopyAxes axes;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 1) continue;
    const CopyAxis axis{dims[i], source.strides[i], target.strides[i]};
    if (!axes.empty() && axes.back().from == axis.from * axis.size &&
        axes.back().to == axis.to * axis.size) {
      axes.back() = {axes.back().size * axis.size, axis.from, axis.to};
    } else {
      axes.push_back(axis);
    }
  }
  if (axes.empty()) axes.push_back({1, 1, 1});
  return axes;
}

void StridedCopy(const Tensor& from, const StridedView& source, Tensor* to,
                 const StridedView& target, absl::Span<const int64_t> dims) {
  // Before anything is multiplied: beside a 0 the others may be of any size.
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return;
  const int64_t elements = Product(dims);
  Axes axes = SimplifiedAxes(dims, source, target);
  // A transposed plane is walked in tiles, for which its two axes must be the last ones.
  if (axes.size() > 2 && axes.back().from != 1) {
    const auto contiguous =
        std::find_if(axes.begin(), axes.end() - 1, [](const Axis& a) { return a.from == 1; });
    if (contiguous != axes.end() - 1) std::rotate(contiguous, contiguous + 1, axes.end() - 1);
  }
  const double cost_ns = IsPlain(from.dtype()) ? 0.5 : 20;
  const Axis whole = axes[0];
  const double item_ns = cost_ns * static_cast<double>(elements) / static_cast<double>(whole.size);
  DispatchElement(from.dtype(), [&]<typename T>(T) {
    const T* first = static_cast<const T*>(from.raw_data()) + source.offset;
    T* out = static_cast<T*>(to->raw_data()) + target.offset;
    ParallelFor(whole.size, item_ns, [&](int64_t begin, int64_t end) {
      Axes part = axes;
      part[0].size = end - begin;
      CopyBox(first + begin * whole.from, out + begin * whole.to, part);
    });
  });
}

void FillElements(const Tensor& value, Tensor* to) {
  StridedCopy(value, {0, {0}}, to, {0, {1}}, {to->num_elements()});
}

namespace {

void JoinOnHost(absl::Span<const JoinedArray> arrays, int64_t rows, Tensor* to) {
  const int64_t row = to->num_elements() / rows;
  int64_t at = 0;
  for (const auto& [array, run] : arrays) {
    if (rows == 1) {  // at once: they may be many and small
      CopyElements(*array, 0, to, at, run);
    } else {
      StridedCopy(*array, {0, {run, 1}}, to, {at, {row, 1}}, {rows, run});
    }
    at += run;
  }
}

}  // namespace

const Mover kHostMover = {
    .copy =
        [](KernelContext&, const Tensor& from, const StridedView& source, Tensor* to,
           const StridedView& target, absl::Span<const int64_t> dims) {
          StridedCopy(from, source, to, target, dims);
          return OkStatus();
        },
    .copy_run =
        [](KernelContext&, const Tensor& from, int64_t i, Tensor* to, int64_t j, int64_t count) {
          CopyElements(from, i, to, j, count);
          return OkStatus();
        },
    .join =
        [](KernelContext&, absl::Span<const JoinedArray> arrays, int64_t rows, Tensor* to) {
          JoinOnHost(arrays, rows, to);
          return OkStatus();
        },
    .zero =
        [](KernelContext&, Tensor* to) {
          ZeroElements(to);
          return OkStatus();
        },
    .fill =
        [](KernelContext&, const Tensor& value, Tensor* to) {
          FillElements(value, to);
          return OkStatus();
        },
};

StridedView BoxView(absl::Span<const int64_t> dims, absl::Span<const int64_t> begin) {
  const DimVector strides = StridesOf(dims);
  uint64_t offset = 0;  // wraps only where nothing is addressed
  for (size_t i = 0; i < dims.size(); ++i) offset += static_cast<uint64_t>(begin[i]) * strides[i];
  return {static_cast<int64_t>(offset), strides};
}

}  // namespace tenon
