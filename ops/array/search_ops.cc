// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/elements.h"
#include "ops/maths.h"

namespace tenon {
namespace {

/// Where in each row of sorted_inputs the row's values would go: before equal ones, or behind them.
template <bool kBehind>
Status BoundKernel(KernelContext& ctx, const Tensor& sorted, const Tensor& values) {
  TENON_RETURN_IF_ERROR(CheckRank(sorted, 2, "sorted_inputs"));
  TENON_RETURN_IF_ERROR(CheckRank(values, 2, "values"));
  if (sorted.dim(0) != values.dim(0)) {
    return InvalidArgument("sorted_inputs and values must have as many rows, found shapes ",
                           sorted.shape(), " and ", values.shape());
  }
  const int64_t n = sorted.dim(1), count = values.dim(1);
  if (ctx.output_type(0) == DType::kInt32 && n > INT32_MAX) {
    return InvalidArgument("rows of ", n, " elements have places that int32 does not hold");
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, values.shape()));
  return DispatchStatus(values.dtype(), RealTypes(), [&]<typename T>(T) {
    const T *from = sorted.data<T>(), *wanted = values.data<T>();
    Dispatch(out->dtype(), TypeList<int32_t, int64_t>(), [&]<typename I>(I) {
      I* const places = out->data<I>();
      ParallelFor(out->num_elements(), 100, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const T *first = from + i / count * n, *last = first + n;
          const T* const place = kBehind ? std::upper_bound(first, last, wanted[i])
                                         : std::lower_bound(first, last, wanted[i]);
          places[i] = static_cast<I>(place - first);
        }
      });
    });
  });
}

Status UnravelIndexKernel(KernelContext& ctx, const Tensor& indices) {
  if (indices.rank() > 1) {
    return InvalidArgument("The indices can only be scalar or vector, got ", indices.shape());
  }
  TENON_ASSIGN_OR_RETURN(const DimVector sizes, ReadIntegerVector(ctx.input(1), "dims"));
  int64_t product = 1;
  for (const int64_t size : sizes) {
    const bool fits = !__builtin_mul_overflow(product, size, &product);
    if (fits && (ctx.input(1).dtype() == DType::kInt64 || product <= INT32_MAX)) continue;
    return InvalidArgument("Input dims product is causing integer overflow: [", Join(sizes, ","),
                           "]");
  }
  TENON_ASSIGN_OR_RETURN(const Shape dims, ReadShape(ctx.input(1), "dims"));
  if (dims.num_elements() == 0) {
    return InvalidArgument("Input dims cannot contain a dim of zero, but dims contains zero: ",
                           dims);
  }
  TENON_ASSIGN_OR_RETURN(const IndexVector flat,
                         ReadIndices(indices, "indices", dims.num_elements()));
  const int64_t n = indices.num_elements();
  DimVector out_dims = {dims.rank()};
  if (indices.rank() == 1) out_dims.push_back(n);
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, out_dims));
  const DimVector strides = StridesOf(dims.dims());
  Dispatch(out->dtype(), TypeList<int32_t, int64_t>(), [&]<typename I>(I) {
    for (int d = 0; d < dims.rank() && !Interrupted(); ++d) {
      for (int64_t i = 0; i < n; ++i) {
        out->data<I>()[d * n + i] = static_cast<I>(flat[i] / strides[d] % dims.dim(d));
      }
    }
  });
  return OkStatus();
}

Status UnravelIndexShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape dims, c.WithRank(1, 1));
  const PartialShape& indices = c.input(0);
  if (indices.rank() > 1) return InvalidArgument("indices must be a scalar or a vector");
  return c.Return(indices.WithInsertedDim(0, dims.dim(0)));
}

}  // namespace

void RegisterSearchOps(OpRegistry& ops) {
  const std::vector<ExampleInput> example = {Tensor::Of<float>({1, 3}, {1, 2, 4}),
                                             Tensor::Of<float>({1, 2}, {2, 5})};
  const KernelOptions real = {.types = {{"T", DTypesOf(RealTypes())}}};
  ops.Add("LowerBound", BoundKernel<false>, real).Example(example);
  ops.Add("UpperBound", BoundKernel<true>, real).Example(example);
  ops.Add("UnravelIndex", UnravelIndexShape, UnravelIndexKernel)
      .Example({Tensor::Vector({5, 0}), Tensor::Vector({2, 3})});
}

}  // namespace tenon
