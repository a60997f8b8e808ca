// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/base/parallel.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/math/argmax.h"
#include "ops/math/columns.h"
#include "ops/math/vector_reductions.h"
#include "ops/maths.h"

namespace tenon {
namespace {

/// A number that no element is worse than.
template <bool kMax, typename C>
constexpr C Worst() {
  return kMax ? std::numeric_limits<C>::lowest() : std::numeric_limits<C>::max();
}

/// Neighbours that are compared at once.
constexpr int64_t kLooked = 4 * Eight<float>::kLanes;

/// Whether one of kLooked neighbours is better than `best`.
template <bool kMax, typename T>
bool AnyBetter(const T* x, T best) {
  using Vector = typename Eight<T>::Type;
  Vector a, b, c, d;
  std::memcpy(&a, x, sizeof(a));
  std::memcpy(&b, x + Eight<T>::kLanes, sizeof(b));
  std::memcpy(&c, x + 2 * Eight<T>::kLanes, sizeof(c));
  std::memcpy(&d, x + 3 * Eight<T>::kLanes, sizeof(d));
  const auto better = kMax ? (a > best) | (b > best) | (c > best) | (d > best)
                           : (a < best) | (b < best) | (c < best) | (d < best);
  uint64_t bits[sizeof(better) / sizeof(uint64_t)], any = 0;
  std::memcpy(bits, &better, sizeof(bits));
  for (const uint64_t some : bits) any |= some;
  return any != 0;
}

/// The first of the largest (or smallest) elements. Comparisons with NaN are false, so that a NaN
/// is never chosen after another element: of [1, NaN, 3] the largest is at 2.
template <bool kMax, typename T>
int64_t BestIndex(const T* x, int64_t n) {
  using C = ComputeType<T>;
  C best = Worst<kMax, C>();
  int64_t index = 0;
  const auto look = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const C v = static_cast<C>(x[i]);
      if (kMax ? v > best : v < best) {
        best = v;
        index = i;
      }
    }
  };
  int64_t i = 0;
  if constexpr (std::is_same_v<C, T> && !std::is_same_v<T, bool>) {
    for (; i + kLooked <= n; i += kLooked) {
      if (AnyBetter<kMax>(x + i, best)) look(i, i + kLooked);
    }
  }
  look(i, n);
  return index;
}

/// Columns that are searched side by side.
constexpr int64_t kArgColumns = 128;

/// BestIndex of `columns` <= kArgColumns columns that begin beside each other, into `index`.
template <bool kMax, typename T, typename I>
void BestIndices(const T* x, int64_t n, int64_t stride, int64_t columns, I* index) {
  using C = ComputeType<T>;
  C best[kArgColumns];
  std::fill_n(best, columns, Worst<kMax, C>());
  std::fill_n(index, columns, I(0));
  SerialFor(n, static_cast<double>(columns), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* const row = x + i * stride;
      TENON_SIMD
      for (int64_t j = 0; j < columns; ++j) {
        const C v = static_cast<C>(row[j]);
        const bool better = kMax ? v > best[j] : v < best[j];
        best[j] = better ? v : best[j];
        index[j] = better ? static_cast<I>(i) : index[j];
      }
    }
  });
}

template <bool kMax>
Status ArgBestKernel(KernelContext& ctx, const Tensor& x) {
  TENON_ASSIGN_OR_RETURN(const int axis, ReadArgAxis(x.shape(), ctx.input(1)));
  const int64_t n = x.dim(axis);
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, x.shape().WithoutDim(axis)));
  const int64_t inner = Product(x.shape().dims(), axis + 1, x.rank());
  if (y->num_elements() == 0) return OkStatus();
  const int64_t outer = y->num_elements() / inner;
  const int64_t width = ColumnsOfItem(outer, inner, kArgColumns);
  const int64_t blocks = (inner + width - 1) / width, items = outer * blocks;
  const bool is_short = n <= std::numeric_limits<int32_t>::max();
  return DispatchStatus(x.dtype(), ArgBestTypes(), [&]<typename T>(T) {
    const T* in = x.data<T>();
    Dispatch(y->dtype(), TypeList<int64_t, int32_t, int16_t, uint16_t>(), [&]<typename Out>(Out) {
      ParallelFor(items, static_cast<double>(n * width), [&](int64_t begin, int64_t end) {
        for (int64_t o = begin; o < end; ++o) {
          const int64_t column = o % blocks * width, columns = std::min(width, inner - column);
          const T* const first = in + o / blocks * n * inner + column;
          Out* const to = y->data<Out>() + o / blocks * inner + column;
          if (inner == 1) {
            *to = static_cast<Out>(BestIndex<kMax>(first, n));
          } else if (is_short) {
            int32_t best[kArgColumns];
            BestIndices<kMax>(first, n, inner, columns, best);
            std::copy_n(best, columns, to);
          } else {
            int64_t best[kArgColumns];
            BestIndices<kMax>(first, n, inner, columns, best);
            std::copy_n(best, columns, to);
          }
        }
      });
    });
  });
}

Status ArgBestShape(ShapeContext& c) {
  const PartialShape& x = c.input(0);
  if (x.rank() == 0) return InvalidArgument("the input must have a dimension, found a scalar");
  const Tensor* dimension = c.constant(1);
  if (dimension != nullptr && dimension->rank() != 0) return c.Return(x.WithoutDim(std::nullopt));
  TENON_ASSIGN_OR_RETURN(const auto axis, ReadAxis(c, 1, x.rank(), "dimension"));
  return c.Return(x.WithoutDim(axis));
}

}  // namespace

StatusOr<int> ReadArgAxis(const Shape& x, const Tensor& dimension) {
  TENON_ASSIGN_OR_RETURN(const int axis, ReadAxis(dimension, x.rank(), "dimension"));
  if (x.dim(axis) > 0) return axis;
  return InvalidArgument("Reduction axis ", axis, " is empty in shape ", x);
}

void RegisterArgMax(OpRegistry& ops) {
  for (const bool max : {true, false}) {
    ops.Add(max ? "ArgMax" : "ArgMin", ArgBestShape,
            max ? ArgBestKernel<true> : ArgBestKernel<false>,
            {.types = {{"T", DTypesOf(ArgBestTypes())}}})
        .Example({Shape{2, 3}, Tensor::Scalar<int32_t>(1)})
        .Example({Shape{2, 3, 4}, Tensor::Scalar<int64_t>(-2)});
  }
}

}  // namespace tenon
