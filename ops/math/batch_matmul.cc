// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>

#include "core/interruption.h"
#include "core/kernel.h"
#include "core/parallel.h"
#include "ops/broadcast.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/math/gemm.h"
#include "ops/math/register.h"

namespace tenon {
namespace {

/// All but the last two dimensions.
Shape BatchOf(const Shape& s) { return Shape(s.dims().first(s.rank() - 2)); }

Status ConjugateInput(KernelContext& ctx, Tensor* x) {
  TENON_ASSIGN_OR_RETURN(Tensor y, ctx.AllocateTemp(x->dtype(), x->shape()));
  Dispatch(x->dtype(), ComplexTypes(), [&](auto zero) {
    using T = decltype(zero);
    const T* from = x->data<T>();
    for (T& v : y.flat<T>()) v = std::conj(*from++);
  });
  *x = std::move(y);
  return OkStatus();
}

class BatchMatMulCpu final : public Kernel {
 public:
  explicit BatchMatMulCpu(KernelConstruction& c)
      : Kernel(c),
        adj_x_(c.Attr<bool>("adj_x")),
        adj_y_(c.Attr<bool>("adj_y")),
        broadcasts_(c.op() != "BatchMatMul") {}

  Status Compute(KernelContext& ctx) const override {
    Tensor x = ctx.input(0), y = ctx.input(1);
    for (int i = 0; i < 2; ++i) {
      if (ctx.input(i).rank() < 2) {
        return InvalidArgument("In[", i, "] ndims must be >= 2: ", ctx.input(i).rank());
      }
    }
    const Shape x_batch = BatchOf(x.shape()), y_batch = BatchOf(y.shape());
    if (!broadcasts_ && !(x_batch == y_batch)) {
      return InvalidArgument("In[0] and In[1] must have the same batch dimensions: ",
                             x.shape().ToString(), " vs. ", y.shape().ToString());
    }
    const Shape* const batches[] = {&x_batch, &y_batch};
    TENON_ASSIGN_OR_RETURN(const BroadcastPlan plan, PlanBroadcast(batches));
    const auto a = x.shape().dims().last(2), b = y.shape().dims().last(2);
    const GemmShape gemm{a[adj_x_], b[!adj_y_], a[!adj_x_], adj_x_, adj_y_};
    if (gemm.k != b[adj_y_]) {
      return InvalidArgument("Matrix size-incompatible: In[0]: ", x.shape().ToString(),
                             ", In[1]: ", y.shape().ToString());
    }
    DimVector dims(plan.shape.dims().begin(), plan.shape.dims().end());
    dims.push_back(gemm.m);
    dims.push_back(gemm.n);
    TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
    TENON_ASSIGN_OR_RETURN(Tensor * z, ctx.AllocateOutput(0, shape));
    // There may be any number of products of nothing, and their sizes need not fit.
    if (shape.num_elements() == 0) return OkStatus();
    if (gemm.k == 0) {
      ZeroElements(z);
      return OkStatus();
    }
    if (adj_x_ && IsComplex(x.dtype())) TENON_RETURN_IF_ERROR(ConjugateInput(ctx, &x));
    if (adj_y_ && IsComplex(y.dtype())) TENON_RETURN_IF_ERROR(ConjugateInput(ctx, &y));
    return Products(plan, gemm, x, y, z);
  }

 private:
  static Status Products(const BroadcastPlan& plan, const GemmShape& gemm, const Tensor& x,
                         const Tensor& y, Tensor* z) {
    const int64_t size = SizeOf(x.dtype());
    const char* a = static_cast<const char*>(x.raw_data());
    const char* b = static_cast<const char*>(y.raw_data());
    char* c = static_cast<char*>(z->raw_data());
    const int64_t a_bytes = gemm.m * gemm.k * size, b_bytes = gemm.k * gemm.n * size;
    const int64_t c_bytes = gemm.m * gemm.n * size;
    const BroadcastPlan::Dim& inner = plan.inner();
    // One product takes all threads by itself; of several, each thread takes some.
    const double cost = 0.02 * static_cast<double>(gemm.m * gemm.n * gemm.k) + 500;
    Mutex mu;
    Status status;
    ForEachRun(plan, cost, [&](const int64_t* from, int64_t begin, int64_t n) {
      for (int64_t i = 0; i < n && !Interrupted(); ++i) {
        const Status s = Gemm(x.dtype(), gemm, a + (from[0] + i * inner.strides[0]) * a_bytes,
                              b + (from[1] + i * inner.strides[1]) * b_bytes,
                              c + (begin + i) * c_bytes);
        if (s.ok()) continue;
        MutexLock lock(mu);
        status.Update(s);
        return;
      }
    });
    return status;
  }

  const bool adj_x_, adj_y_, broadcasts_;
};

PartialShape PartialBatch(const PartialShape& s) {
  return s.rank_known() ? PartialShape(s.dims().subspan(0, s.rank() - 2)) : PartialShape();
}

Status BatchMatMulShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape x, c.WithRankAtLeast(0, 2));
  TENON_ASSIGN_OR_RETURN(const PartialShape y, c.WithRankAtLeast(1, 2));
  if (!x.rank_known() || !y.rank_known()) return OkStatus();
  const bool adj_x = c.attrs().GetOr<bool>("adj_x", false);
  const bool adj_y = c.attrs().GetOr<bool>("adj_y", false);
  const int64_t kx = x.dim(x.rank() - (adj_x ? 2 : 1)), ky = y.dim(y.rank() - (adj_y ? 1 : 2));
  if (kx >= 0 && ky >= 0 && kx != ky) {
    return InvalidArgument("Matrix size-incompatible: In[0]: ", x.ToString(),
                           ", In[1]: ", y.ToString());
  }
  TENON_ASSIGN_OR_RETURN(const PartialShape batch,
                         BroadcastShapes(PartialBatch(x), PartialBatch(y)));
  DimVector dims(batch.dims().begin(), batch.dims().end());
  dims.push_back(x.dim(x.rank() - (adj_x ? 1 : 2)));
  dims.push_back(y.dim(y.rank() - (adj_y ? 2 : 1)));
  c.set_output(0, PartialShape(absl::Span<const int64_t>(dims)));
  return OkStatus();
}

void ProductGradients(const Node& node, Output dy, Output* dx_out, Output* dy_out) {
  const Output x = node.input(0), y = node.input(1);
  const bool adj_x = node.attrs().GetOr<bool>("adj_x", false);
  const bool adj_y = node.attrs().GetOr<bool>("adj_y", false);
  *dx_out = adj_x ? BatchMatMulV2(y, dy, {.adj_x = adj_y, .adj_y = true})
                  : BatchMatMulV2(dy, y, {.adj_x = false, .adj_y = !adj_y});
  *dy_out = adj_y ? BatchMatMulV2(dy, x, {.adj_x = true, .adj_y = adj_x})
                  : BatchMatMulV2(x, dy, {.adj_x = !adj_x, .adj_y = false});
}

void BatchMatMulGrad(GradContext& g) { ProductGradients(g.node(), g.dy(0), &g.dx(0), &g.dx(1)); }

/// The shape of `x` without the last two dimensions, at run time.
Output BatchShape(Output shape) { return Slice(shape, {0}, Reshape(Sub(Size(shape), 2), {1})); }

void BatchMatMulV2Grad(GradContext& g) {
  const Output x = g.in(0), y = g.in(1);
  Output &dx = g.dx(0), &dy = g.dx(1);
  ProductGradients(g.node(), g.dy(0), &dx, &dy);
  const PartialShape x_batch = PartialBatch(x.shape()), y_batch = PartialBatch(y.shape());
  if (x_batch.IsFullyKnown() && x_batch == y_batch) return;
  const Output x_shape = ShapeVector(x), y_shape = ShapeVector(y);
  const auto [x_repeated, y_repeated] =
      BroadcastGradientArgs(BatchShape(x_shape), BatchShape(y_shape));
  dx = Reshape(Sum(dx, x_repeated), x_shape);
  dy = Reshape(Sum(dy, y_repeated), y_shape);
}

}  // namespace

void RegisterBatchMatMul(OpRegistry& ops) {
  const AttributeMap adjoint_x = {{"adj_x", true}}, adjoint_y = {{"adj_y", true}};
  const AttributeMap adjoint_both = {{"adj_x", true}, {"adj_y", true}};
  ops.Get("BatchMatMul")
      .Shape(BatchMatMulShape).Kernel<BatchMatMulCpu>(kCpu).Grad(BatchMatMulGrad)
      .Example({Shape{2, 2, 3}, Shape{2, 3, 4}})
      .Example({Shape{2, 3, 2}, Shape{2, 4, 3}}, adjoint_both);
  ops.Get("BatchMatMulV2")
      .Shape(BatchMatMulShape).Kernel<BatchMatMulCpu>(kCpu).Grad(BatchMatMulV2Grad)
      .Example({Shape{2, 2, 3}, Shape{2, 3, 4}})
      .Example({Shape{2, 1, 3, 2}, Shape{5, 3, 4}}, adjoint_x)
      .Example({Shape{2, 3}, Shape{2, 4, 3}}, adjoint_y);
}

}  // namespace tenon
