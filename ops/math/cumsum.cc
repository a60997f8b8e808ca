// SPDX-License-Identifier: Apache-2.0
#include "core/op_registry.h"
#include "core/parallel.h"
#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/math/math_ops.h"
#include "ops/maths.h"

namespace tenon {
namespace {

template <typename T>
void AddUp(const T* x, T* out, int64_t n, int64_t stride, bool exclusive, bool reverse) {
  using C = ComputeType<T>;
  C sum(0);
  SerialFor(n, 2, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const int64_t at = (reverse ? n - 1 - k : k) * stride;
      const C before = sum;
      sum = Plus(sum, C(x[at]));
      out[at] = T(exclusive ? before : sum);
    }
  });
}

Status CumsumKernel(KernelContext& ctx, bool exclusive, bool reverse) {
  const Tensor& x = ctx.input(0);
  TENON_ASSIGN_OR_RETURN(const int axis, ReadAxis(ctx.input(1), x.rank(), "axis"));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, x.shape()));
  if (x.num_elements() == 0) return OkStatus();
  const int64_t n = x.dim(axis);
  const int64_t inner = Product(x.shape().dims(), axis + 1, x.rank());
  const int64_t lines = x.num_elements() / n;
  return DispatchStatus(x.dtype(), NumericTypes(), [&]<typename T>(T) {
    SerialFor(lines, 2.0 * static_cast<double>(n), [&](int64_t begin, int64_t end) {
      for (int64_t l = begin; l < end; ++l) {
        const int64_t first = l / inner * n * inner + l % inner;
        AddUp(x.data<T>() + first, out->data<T>() + first, n, inner, exclusive, reverse);
      }
    });
  });
}

Status CumsumShape(ShapeContext& c) {
  TENON_RETURN_IF_ERROR(ReadAxis(c, 1, c.input(0).rank(), "axis"));
  return UnchangedShape(c);
}

void CumsumGrad(GradContext& g) {
  g.dx(0) = Cumsum(g.dy(0), g.in(1),
                   {.exclusive = g.Attr("exclusive", false), .reverse = !g.Attr("reverse", false)});
}

}  // namespace

void RegisterCumsum(OpRegistry& ops) {
  ops.Add("Cumsum", CumsumShape, CumsumKernel,
          {.types = {{"T", DTypesOf(NumericTypes())}}, .attrs = {"exclusive", "reverse"}})
      .Grad(CumsumGrad)
      .Example({Shape{2, 3}, Tensor::Scalar<int32_t>(-1)})
      .Example({Shape{2, 3}, Tensor::Scalar<int64_t>(0)}, {{"exclusive", true}, {"reverse", true}});
}

}  // namespace tenon
