// SPDX-License-Identifier: Apache-2.0
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/math/gemm.h"
#include "ops/math/matmul_shape.h"

namespace tenon {

StatusOr<GemmShape> MatMulSizes(const Tensor& a, const Tensor& b, bool transpose_a,
                                bool transpose_b) {
  if (a.rank() != 2 || b.rank() != 2) {
    const char* difference = a.rank() == b.rank() ? "" : "In[0] and In[1] has different ndims: ";
    return InvalidArgument(difference, a.shape(), " vs. ", b.shape(), ": In[", a.rank() == 2,
                           "] is not a matrix");
  }
  return ProductSizes(a.shape(), b.shape(), transpose_a, transpose_b);
}

Status MatMulShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape a, c.WithRank(0, 2));
  TENON_ASSIGN_OR_RETURN(const PartialShape b, c.WithRank(1, 2));
  TENON_ASSIGN_OR_RETURN(const GemmShape gemm,
                         ProductSizes(a, b, c.attrs().GetOr("transpose_a", false),
                                      c.attrs().GetOr("transpose_b", false)));
  return c.Return(PartialShape{gemm.m, gemm.n});
}

namespace {

Status MatMulKernel(KernelContext& ctx, bool transpose_a, bool transpose_b) {
  const Tensor &a = ctx.input(0), &b = ctx.input(1);
  TENON_ASSIGN_OR_RETURN(const GemmShape gemm, MatMulSizes(a, b, transpose_a, transpose_b));
  TENON_ASSIGN_OR_RETURN(Tensor * c, ctx.CreateOutput(0, {gemm.m, gemm.n}));
  return Gemm(a.dtype(), gemm, a.raw_data(), b.raw_data(), c->raw_data());
}

void MatMulGrad(GradContext& g) {
  const bool ta = g.Attr("transpose_a", false), tb = g.Attr("transpose_b", false);
  const Output a = ConjugateOf(g.in(0)), b = ConjugateOf(g.in(1)), dy = g.dy(0);
  g.dx(0) = ta ? MatMul(b, dy, {.transpose_a = tb, .transpose_b = true})
               : MatMul(dy, b, {.transpose_a = false, .transpose_b = !tb});
  g.dx(1) = tb ? MatMul(dy, a, {.transpose_a = true, .transpose_b = ta})
               : MatMul(a, dy, {.transpose_a = !ta, .transpose_b = false});
}

}  // namespace

void RegisterMatMul(OpRegistry& ops) {
  ops.Add("MatMul", MatMulShape, MatMulKernel, {.attrs = {"transpose_a", "transpose_b"}})
      .Grad(MatMulGrad)
      .Example({Shape{2, 3}, Shape{3, 4}})
      .Example({Shape{3, 2}, Shape{3, 4}}, {{"transpose_a", true}})
      .Example({Shape{2, 3}, Shape{4, 3}}, {{"transpose_b", true}})
      .Example({Shape{3, 2}, Shape{4, 3}}, {{"transpose_a", true}, {"transpose_b", true}})
      .Example({Shape{2, 0}, Shape{0, 4}});
}

}  // namespace tenon
