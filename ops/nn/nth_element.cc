// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/base/parallel.h"
#include "core/memory/counted_memory.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/maths.h"
#include "ops/nn/nn_ops.h"

namespace tenon {
namespace {

Status NthElementKernel(KernelContext& ctx, const Tensor& in, bool reverse) {
  TENON_ASSIGN_OR_RETURN(int64_t n, ReadInteger(ctx.input(1), "n"));
  const int last = in.rank() - 1;
  const int64_t width = in.dim(last);
  if (n < 0) return InvalidArgument("n must be non-negative but is ", n);
  if (n >= width) {
    return InvalidArgument(
        "Input must have at least n+1 columns: it must have last dimension > n = ", n, " but has ",
        width);
  }
  if (reverse) n = width - 1 - n;
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape().WithoutDim(last)));
  return DispatchStatus(in.dtype(), RealTypes(), [&]<typename T>(T) {
    using C = ComputeType<T>;
    // NaN comes last, so that there is an order at all.
    const auto less = [](const T& a, const T& b) {
      return C(a) < C(b) || (IsNan(C(b)) && !IsNan(C(a)));
    };
    const double row_ns = 5.0 * static_cast<double>(width);
    ParallelFor(out->num_elements(), row_ns, [&](int64_t begin, int64_t end) {
      CountedVector<T> row(width);
      for (int64_t r = begin; r < end; ++r) {
        std::copy_n(in.data<T>() + r * width, width, row.begin());
        std::nth_element(row.begin(), row.begin() + n, row.end(), less);
        out->data<T>()[r] = row[n];
      }
    });
  });
}

/// Elements that are equal to the one chosen share its gradient.
void NthElementGrad(GradContext& g) {
  const Output chosen = Cast(Equal(ExpandDims(g.out(0), -1), g.in(0)), g.dy(0).dtype());
  g.dx(0) = chosen / Sum(chosen, -1, {.keep_dims = true}) * ExpandDims(g.dy(0), -1);
}

}  // namespace

void RegisterNthElement(OpRegistry& ops) {
  ops.Add("NthElement", NthElementKernel, {.attrs = {"reverse"}})
      .Grad(NthElementGrad)
      .Example({Shape{2, 5}, Tensor::Scalar(1)})
      .Example({Shape{2, 5}, Tensor::Scalar(1)}, {{"reverse", true}});
}

}  // namespace tenon
