// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "core/base/parallel.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/math/argmax.h"
#include "ops/maths.h"

namespace tenon {
namespace {

/// The first of the largest (or smallest) elements. Comparisons with NaN are false, so that a NaN
/// is never chosen after another element: of [1, NaN, 3] the largest is at 2.
template <bool kMax, typename T>
int64_t BestIndex(const T* x, int64_t n, int64_t stride) {
  using C = ComputeType<T>;
  C best = kMax ? std::numeric_limits<C>::lowest() : std::numeric_limits<C>::max();
  int64_t index = 0;
  for (int64_t i = 0; i < n; ++i) {
    const C v = static_cast<C>(x[i * stride]);
    if (kMax ? v > best : v < best) {
      best = v;
      index = i;
    }
  }
  return index;
}

template <bool kMax>
Status ArgBestKernel(KernelContext& ctx, const Tensor& x) {
  TENON_ASSIGN_OR_RETURN(const int axis, ReadArgAxis(x.shape(), ctx.input(1)));
  const int64_t n = x.dim(axis);
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, x.shape().WithoutDim(axis)));
  const int64_t inner = Product(x.shape().dims(), axis + 1, x.rank());
  return DispatchStatus(x.dtype(), ArgBestTypes(), [&]<typename T>(T) {
    const T* in = x.data<T>();
    ParallelFor(y->num_elements(), static_cast<double>(n), [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        const int64_t best = BestIndex<kMax>(in + o / inner * n * inner + o % inner, n, inner);
        Dispatch(y->dtype(), TypeList<int64_t, int32_t, int16_t, uint16_t>(),
                 [&]<typename I>(I) { y->data<I>()[o] = static_cast<I>(best); });
      }
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
