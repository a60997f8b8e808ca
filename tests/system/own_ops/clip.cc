// SPDX-License-Identifier: Apache-2.0
#include "clip.h"

#include <cmath>

#include "clip_ops.h"
#include "ops/elementwise.h"

namespace {

using namespace tenon;

struct HardTanhOp {
  static constexpr std::string_view kName = "HardTanh";
  using Types = TypeList<float, double>;
  template <typename T>
  static T Apply(T x) {
    return x < T(-1) ? T(-1) : x > T(1) ? T(1) : x;
  }
  static Output Grad(Output x, Output, Output dy) { return dy * Cast(Abs(x) < 1, dy.dtype()); }
};

Status ScaleRowsShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape x, c.WithRank(0, 2));
  TENON_ASSIGN_OR_RETURN(const PartialShape scale, c.WithRank(1, 1));
  TENON_ASSIGN_OR_RETURN(const PartialShape rows, scale.MergeWith({x.dim(0)}));
  return c.Return(PartialShape{rows.dim(0), x.dim(1)});
}

Status ScaleRowsKernel(KernelContext& ctx, int64_t power) {
  const Tensor &x = ctx.input(0), &scale = ctx.input(1);
  if (x.rank() != 2 || scale.shape() != Shape{x.dim(0)}) {
    return InvalidArgument("found x ", x.shape().ToString(), " and scale ",
                           scale.shape().ToString(), ", wanted [rows,columns] and [rows]");
  }
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, x.shape()));
  Dispatch(x.dtype(), TypeList<float, double>(), [&](auto zero) {
    using T = decltype(zero);
    const int64_t columns = x.dim(1);
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      const double factor = std::pow(scale.data<T>()[i / columns], power);
      y->data<T>()[i] = static_cast<T>(x.data<T>()[i] * factor);
    }
  });
  return OkStatus();
}

void ScaleRowsGrad(GradContext& g) {
  const auto power = g.Attr<int64_t>("power");
  const Output x = g.in(0), scale = g.in(1), dy = g.dy(0);
  g.dx(0) = ScaleRows(dy, scale, {.power = power});
  g.dx(1) = power * Pow(scale, power - 1) * Sum(x * dy, {1});
}

}  // namespace

void RegisterClipOps(OpRegistry& ops) {
  if (!DeclareClipOps(ops)) return;
  RegisterUnaryList(ops, TypeList<HardTanhOp>());
  ops.Get("ScaleRows")
      .Shape(ScaleRowsShape)
      .Kernel(kCpu, ScaleRowsKernel, {.attrs = {"power"}})
      .Grad(ScaleRowsGrad)
      .Example({Shape{2, 3}, Shape{2}});
}
