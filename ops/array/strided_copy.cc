// SPDX-License-Identifier: Apache-2.0
#include "ops/array/strided_copy.h"

#include <algorithm>
#include <cstring>

#include "core/base/interruption.h"
#include "core/base/parallel.h"
#include "ops/arguments.h"
#include "ops/array/plane_copy.h"
#include "ops/elements.h"
#include "ops/maths.h"

namespace tenon {
namespace {

using Axis = CopyAxis;
using Axes = CopyAxes;

/// Guess of what copying an element costs.
double ElementCopyNs(DType type) { return IsPlain(type) ? 0.5 : 20; }

/// Bytes that are copied without a call, which takes longer than so few.
constexpr size_t kFewBytes = 64;

/// Copies `size` <= kFewBytes bytes: the last ones by a move that begins within the one before.
inline void CopyFewBytes(const char* from, char* to, size_t size) {
  const auto moves = [&]<size_t kBytes>(std::integral_constant<size_t, kBytes>) {
    char first[kBytes], last[kBytes];
    std::memcpy(first, from, kBytes);
    std::memcpy(last, from + size - kBytes, kBytes);
    std::memcpy(to, first, kBytes);
    std::memcpy(to + size - kBytes, last, kBytes);
  };
  if (size >= 32) return moves(std::integral_constant<size_t, 32>());
  if (size >= 16) return moves(std::integral_constant<size_t, 16>());
  if (size >= 8) return moves(std::integral_constant<size_t, 8>());
  if (size >= 4) return moves(std::integral_constant<size_t, 4>());
  if (size >= 2) return moves(std::integral_constant<size_t, 2>());
  *to = *from;
}

template <typename T>
void CopyLine(const T* from, T* to, const Axis& a) {
  if (a.from == 1 && a.to == 1) {
    const size_t bytes = static_cast<size_t>(a.size) * sizeof(T);
    if (std::is_trivially_copyable_v<T> && bytes <= kFewBytes) {
      CopyFewBytes(reinterpret_cast<const char*>(from), reinterpret_cast<char*>(to), bytes);
    } else {
      std::copy(from, from + a.size, to);
    }
  } else if (a.from == 0 && a.to == 1) {
    std::fill_n(to, a.size, *from);
  } else if (a.from == -1 && a.to == 1 && std::is_trivially_copyable_v<T>) {
    TENON_SIMD
    for (int64_t i = 0; i < a.size; ++i) to[i] = from[-i];
  } else {
    for (int64_t i = 0; i < a.size; ++i) to[i * a.to] = from[i * a.from];
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
      CopyPlane(from, to, axes[last - 1], axes[last]);
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
  // A transposed plane is copied as a whole, for which its two axes must be the last ones.
  if (axes.size() > 2 && axes.back().from != 1) {
    const auto contiguous =
        std::find_if(axes.begin(), axes.end() - 1, [](const Axis& a) { return a.from == 1; });
    if (contiguous != axes.end() - 1) std::rotate(contiguous, contiguous + 1, axes.end() - 1);
  }
  const double cost_ns = ElementCopyNs(from.dtype());
  // Channels are few: of a plane that is all there is, the longer axis is divided.
  const size_t cut = axes.size() == 2 && axes[1].size > axes[0].size ? 1 : 0;
  const Axis whole = axes[cut];
  const double item_ns = cost_ns * static_cast<double>(elements) / static_cast<double>(whole.size);
  DispatchElement(from.dtype(), [&]<typename T>(T) {
    const T* first = static_cast<const T*>(from.raw_data()) + source.offset;
    T* out = static_cast<T*>(to->raw_data()) + target.offset;
    ParallelFor(whole.size, item_ns, [&](int64_t begin, int64_t end) {
      Axes part = axes;
      part[cut].size = end - begin;
      CopyBox(first + begin * whole.from, out + begin * whole.to, part);
    });
  });
}

void FillElements(const Tensor& value, Tensor* to) {
  StridedCopy(value, {0, {0}}, to, {0, {1}}, {to->num_elements()});
}

namespace {

/// Rows of the result that are made at a time, of all arrays: so many bytes, which a cache holds.
constexpr int64_t kJoinedBytes = 8192;

/// The rows [begin, end) of `to`, whose first row's first element is `out`.
template <typename T>
void JoinRows(absl::Span<const JoinedArray> arrays, int64_t begin, int64_t end, T* out,
              int64_t row) {
  const int64_t block = std::max<int64_t>(1, kJoinedBytes / (row * int64_t{sizeof(T)}));
  for (; begin < end && !Interrupted(); begin += block) {
    const int64_t rows = std::min(block, end - begin);
    T* to = out + begin * row;
    for (const auto& [array, run] : arrays) {
      if (run == 0) continue;
      const T* from = static_cast<const T*>(array->raw_data()) + begin * run;
      if (run == 1) {
        CopyLine(from, to, {rows, 1, row});
      } else {
        for (int64_t r = 0; r < rows; ++r) CopyLine(from + r * run, to + r * row, {run, 1, 1});
      }
      to += run;
    }
  }
}

/// The same of arrays that have one element for each row, where they are few; whether they were.
template <typename T>
bool JoinColumns(absl::Span<const JoinedArray> arrays, int64_t begin, int64_t end, T* out) {
  return InterleaveFew<T>(
      static_cast<int64_t>(arrays.size()),
      [&](int i) { return static_cast<const T*>(arrays[i].array->raw_data()) + begin; },
      out + begin * static_cast<int64_t>(arrays.size()), end - begin);
}

void JoinOnHost(absl::Span<const JoinedArray> arrays, int64_t rows, Tensor* to) {
  const int64_t row = to->num_elements() / rows;
  if (rows == 1) {  // each at once: they may be many and small
    int64_t at = 0;
    for (const auto& [array, run] : arrays) {
      CopyElements(*array, 0, to, at, run);
      at += run;
    }
    return;
  }
  const bool columns = static_cast<size_t>(row) == arrays.size() &&
                       std::all_of(arrays.begin(), arrays.end(),
                                   [](const JoinedArray& array) { return array.run == 1; });
  DispatchElement(to->dtype(), [&]<typename T>(T) {
    T* const out = static_cast<T*>(to->raw_data());
    const double row_ns = ElementCopyNs(to->dtype()) * static_cast<double>(row);
    ParallelFor(rows, row_ns, [&](int64_t begin, int64_t end) {
      if (!columns || !JoinColumns<T>(arrays, begin, end, out)) {
        JoinRows<T>(arrays, begin, end, out, row);
      }
    });
  });
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
