// SPDX-License-Identifier: Apache-2.0
#include "core/base/parallel.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/linalg/linalg_ops.h"
#include "ops/maths.h"

namespace tenon {
namespace {

Status CrossKernel(KernelContext& ctx, const Tensor& a, const Tensor& b) {
  TENON_RETURN_IF_ERROR(CheckSameShape(ctx));
  if (a.rank() < 1) return InvalidArgument("a and b must be of rank 1 or more");
  if (a.dim(a.rank() - 1) != 3) {
    return FailedPrecondition("a and b must be vectors of 3 elements, found shape ", a.shape());
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, a.shape()));
  return DispatchStatus(a.dtype(), RealTypes(), [&]<typename T>(T) {
    using C = ComputeType<T>;
    ParallelFor(a.num_elements() / 3, 3, [&](int64_t begin, int64_t end) {
      for (int64_t i = 3 * begin; i < 3 * end; i += 3) {
        const T *u = a.data<T>() + i, *v = b.data<T>() + i;
        for (int k = 0; k < 3; ++k) {
          const int l = (k + 1) % 3, m = (k + 2) % 3;
          out->data<T>()[i + k] = T(Minus(Times(C(u[l]), C(v[m])), Times(C(u[m]), C(v[l]))));
        }
      }
    });
  });
}

Status CrossShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape shape, c.Merged());
  const int last = shape.rank() - 1;
  if (shape.rank() == 0 || (shape.rank_known() && shape.dim(last) >= 0 && shape.dim(last) != 3)) {
    return InvalidArgument("a and b must be vectors of 3 elements, found shape ", shape);
  }
  return c.Return(shape);
}

}  // namespace

void RegisterCross(OpRegistry& ops) {
  ops.Add("Cross", CrossShape, CrossKernel)
      .Grad([](GradContext& g) {
        g.dx(0) = Cross(g.in(1), g.dy(0));
        g.dx(1) = Cross(g.dy(0), g.in(0));
      })
      .Example({Shape{2, 3}, Shape{2, 3}});
}

}  // namespace tenon
