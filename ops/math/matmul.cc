// SPDX-License-Identifier: Apache-2.0
#include "core/kernel.h"
#include "ops/composition.h"
#include "ops/math/gemm.h"
#include "ops/math/matmul_shape.h"
#include "ops/math/register.h"

namespace tenon {

StatusOr<GemmShape> MatMulSizes(const Shape& a, const Shape& b, bool transpose_a,
                                bool transpose_b) {
  for (const Shape* s : {&a, &b}) {
    if (s->rank() != 2) {
      return InvalidArgument("In[", s == &a ? 0 : 1, "] is not a matrix. Instead it has shape ",
                             s->ToString());
    }
  }
  GemmShape gemm{a.dim(transpose_a ? 1 : 0), b.dim(transpose_b ? 0 : 1),
                 a.dim(transpose_a ? 0 : 1), transpose_a, transpose_b};
  if (gemm.k != b.dim(transpose_b ? 1 : 0)) {
    return InvalidArgument("Matrix size-incompatible: In[0]: ", a.ToString(),
                           ", In[1]: ", b.ToString());
  }
  return gemm;
}

Status MatMulShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape a, c.WithRank(0, 2));
  TENON_ASSIGN_OR_RETURN(const PartialShape b, c.WithRank(1, 2));
  const bool ta = c.attrs().GetOr<bool>("transpose_a", false);
  const bool tb = c.attrs().GetOr<bool>("transpose_b", false);
  const int64_t ka = a.dim(ta ? 0 : 1), kb = b.dim(tb ? 1 : 0);
  if (ka >= 0 && kb >= 0 && ka != kb) {
    return InvalidArgument("Matrix size-incompatible: In[0]: ", a.ToString(),
                           ", In[1]: ", b.ToString());
  }
  c.set_output(0, PartialShape{a.dim(ta ? 1 : 0), b.dim(tb ? 0 : 1)});
  return OkStatus();
}

namespace {

class MatMulCpu final : public Kernel {
 public:
  explicit MatMulCpu(KernelConstruction& c)
      : Kernel(c),
        transpose_a_(c.Attr<bool>("transpose_a")),
        transpose_b_(c.Attr<bool>("transpose_b")) {}

  Status Compute(KernelContext& ctx) const override {
    const Tensor &a = ctx.input(0), &b = ctx.input(1);
    TENON_ASSIGN_OR_RETURN(const GemmShape gemm,
                           MatMulSizes(a.shape(), b.shape(), transpose_a_, transpose_b_));
    TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create({{gemm.m, gemm.n}}));
    TENON_ASSIGN_OR_RETURN(Tensor * c, ctx.AllocateOutput(0, shape));
    return Gemm(a.dtype(), gemm, a.raw_data(), b.raw_data(), c->raw_data());
  }

 private:
  const bool transpose_a_, transpose_b_;
};

void MatMulGrad(GradContext& g) {
  const bool ta = g.Attr<bool>("transpose_a", false);
  const bool tb = g.Attr<bool>("transpose_b", false);
  const Output a = ConjugateOf(g.in(0)), b = ConjugateOf(g.in(1));
  const Output dy = g.dy(0);
  Output &da = g.dx(0), &db = g.dx(1);
  da = ta ? MatMul(b, dy, {.transpose_a = tb, .transpose_b = true})
          : MatMul(dy, b, {.transpose_a = false, .transpose_b = !tb});
  db = tb ? MatMul(dy, a, {.transpose_a = true, .transpose_b = ta})
          : MatMul(a, dy, {.transpose_a = !ta, .transpose_b = false});
}

}  // namespace

void RegisterMatMul(OpRegistry& ops) {
  ops.Get("MatMul")
      .Shape(MatMulShape).Kernel<MatMulCpu>(kCpu).Grad(MatMulGrad)
      .Example({Shape{2, 3}, Shape{3, 4}})
      .Example({Shape{3, 2}, Shape{3, 4}}, {{"transpose_a", true}})
      .Example({Shape{2, 3}, Shape{4, 3}}, {{"transpose_b", true}})
      .Example({Shape{3, 2}, Shape{4, 3}}, {{"transpose_a", true}, {"transpose_b", true}})
      .Example({Shape{2, 0}, Shape{0, 4}});
}

}  // namespace tenon
