// SPDX-License-Identifier: Apache-2.0
#include "core/base/mutex.h"
#include "core/op/op_registry.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/math/cast.h"
#include "ops/math/gemms.h"
#include "ops/math/math_ops.h"
#include "ops/math/matmul_shape.h"

namespace tenon {
namespace {

Status ConjugateInput(KernelContext& ctx, Tensor* x) {
  TENON_ASSIGN_OR_RETURN(Tensor y, ctx.AllocateTemp(x->dtype(), x->shape()));
  Dispatch(x->dtype(), ComplexTypes(), [&]<typename T>(T) {
    const T* from = x->data<T>();
    for (T& v : y.flat<T>()) v = std::conj(*from++);
  });
  *x = std::move(y);
  return OkStatus();
}

Status Products(const BroadcastPlan& plan, const GemmShape& gemm, const Tensor& x, const Tensor& y,
                Tensor* z) {
  const int64_t a_size = gemm.m * gemm.k, b_size = gemm.k * gemm.n, c_size = gemm.m * gemm.n;
  const BroadcastPlan::Dim& inner = plan.inner();
  Mutex mu;
  Status status;
  // One product takes all threads by itself; of several, each thread takes some.
  ForEachRun(plan, GemmCost(z->dtype(), gemm), [&](const int64_t* from, int64_t begin, int64_t n) {
    const GemmRun run = {.a = ElementAt(x, from[0] * a_size),
                         .a_step = inner.strides[0] * a_size,
                         .b = ElementAt(y, from[1] * b_size),
                         .b_step = inner.strides[1] * b_size,
                         .c = ElementAt(*z, begin * c_size),
                         .count = n};
    const Status s = Gemms(z->dtype(), gemm, run);
    if (s.ok()) return;
    MutexLock lock(mu);
    status.Update(s);
  });
  return status;
}

template <bool kBroadcasts>
Status BatchMatMulKernel(KernelContext& ctx, bool adj_x, bool adj_y) {
  TENON_ASSIGN_OR_RETURN(
      const BatchedProduct product,
      BatchMatMulSizes(ctx.input(0).shape(), ctx.input(1).shape(), adj_x, adj_y, kBroadcasts));
  const BroadcastPlan& plan = product.batch;
  const GemmShape& gemm = product.gemm;
  TENON_ASSIGN_OR_RETURN(Tensor * z,
                         ctx.CreateOutput(0, Concat(plan.shape.dims(), {gemm.m, gemm.n})));
  // There may be any number of products of nothing, and their sizes need not fit.
  if (z->num_elements() == 0) return OkStatus();
  if (gemm.k == 0) {
    ZeroElements(z);
    return OkStatus();
  }
  TENON_ASSIGN_OR_RETURN(Tensor x, ConvertedTo(z->dtype(), ctx.input(0), ctx));
  TENON_ASSIGN_OR_RETURN(Tensor y, ConvertedTo(z->dtype(), ctx.input(1), ctx));
  if (adj_x && IsComplex(x.dtype())) TENON_RETURN_IF_ERROR(ConjugateInput(ctx, &x));
  if (adj_y && IsComplex(y.dtype())) TENON_RETURN_IF_ERROR(ConjugateInput(ctx, &y));
  return Products(plan, gemm, x, y, z);
}

PartialShape PartialBatch(const PartialShape& s) { return s.Part(0, s.rank() - 2); }

Status BatchMatMulShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape x, c.WithRankAtLeast(0, 2));
  TENON_ASSIGN_OR_RETURN(const PartialShape y, c.WithRankAtLeast(1, 2));
  if (!x.rank_known() || !y.rank_known()) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const GemmShape gemm, ProductSizes(x, y, c.attrs().GetOr("adj_x", false),
                                                            c.attrs().GetOr("adj_y", false)));
  TENON_ASSIGN_OR_RETURN(const PartialShape batch,
                         BroadcastShapes(PartialBatch(x), PartialBatch(y)));
  return c.Return(batch.ConcatWith({gemm.m, gemm.n}));
}

void BatchMatMulGrad(GradContext& g) {
  const Output x = g.in(0), y = g.in(1), dz = g.dy(0);
  const bool adj_x = g.Attr("adj_x", false), adj_y = g.Attr("adj_y", false);
  g.dx(0) = adj_x ? BatchMatMulV2(y, dz, {.adj_x = adj_y, .adj_y = true})
                  : BatchMatMulV2(dz, y, {.adj_x = false, .adj_y = !adj_y});
  g.dx(1) = adj_y ? BatchMatMulV2(dz, x, {.adj_x = true, .adj_y = adj_x})
                  : BatchMatMulV2(x, dz, {.adj_x = !adj_x, .adj_y = false});
}

/// The shape of `x` without the last two dimensions, at run time.
Output BatchShape(Output shape) { return Slice(shape, {0}, Reshape(Size(shape) - 2, {1})); }

void BatchMatMulV2Grad(GradContext& g) {
  const Output x = g.in(0), y = g.in(1);
  Output &dx = g.dx(0), &dy = g.dx(1);
  BatchMatMulGrad(g);
  const PartialShape x_batch = PartialBatch(x.shape()), y_batch = PartialBatch(y.shape());
  if (x_batch.IsFullyKnown() && x_batch == y_batch) return;
  const Output x_shape = ShapeVector(x), y_shape = ShapeVector(y);
  const auto [x_repeated, y_repeated] =
      BroadcastGradientArgs(BatchShape(x_shape), BatchShape(y_shape));
  dx = Reshape(Sum(dx, x_repeated), x_shape);
  dy = Reshape(Sum(dy, y_repeated), y_shape);
}

/// Adds the kernels of BatchMatMulV3 for the combinations of types that TensorFlow has: operands of
/// the result's type, and bytes with bytes or with bfloat16.
void AddMixedKernels(OpBuilder& op, KernelOptions options) {
  const auto add = [&](const DTypeVector& x, const DTypeVector& y, DType z) {
    options.types = {{"Ta", x}, {"Tb", y}, {"Tout", {z}}};
    op.Kernel(kCpu, BatchMatMulKernel<true>, options);
  };
  using Types = TypeList<float, double, Half, BFloat16, int16_t, int32_t, int64_t,
                         std::complex<float>, std::complex<double>>;
  for (const DType type : DTypesOf(Types())) add({type}, {type}, type);
  const DTypeVector bytes = {DType::kInt8, DType::kUInt8}, wide = {DType::kBFloat16};
  add(bytes, bytes, DType::kInt32);
  add(wide, bytes, DType::kBFloat16);
  add(bytes, wide, DType::kBFloat16);
}

/// All but the last two dimensions.
Shape BatchOf(const Shape& s) { return Shape(s.dims().first(s.rank() - 2)); }

}  // namespace

StatusOr<BatchedProduct> BatchMatMulSizes(const Shape& x, const Shape& y, bool adj_x, bool adj_y,
                                          bool broadcasts) {
  if (x.rank() < 2 || y.rank() < 2) {
    return InvalidArgument("In[", x.rank() >= 2, "] ndims must be >= 2, found shapes ", x, " and ",
                           y);
  }
  const Shape x_batch = BatchOf(x), y_batch = BatchOf(y);
  if (!broadcasts && x_batch != y_batch) {
    return InvalidArgument("In[0] and In[1] must have the same batch dimensions: ", x, " vs. ", y);
  }
  BatchedProduct product;
  TENON_ASSIGN_OR_RETURN(product.batch, PlanBroadcast({&x_batch, &y_batch}));
  TENON_ASSIGN_OR_RETURN(product.gemm, ProductSizes(x, y, adj_x, adj_y));
  return product;
}

void RegisterBatchMatMul(OpRegistry& ops) {
  const KernelOptions options = {.attrs = {"adj_x", "adj_y"}};
  ops.Add("BatchMatMul", BatchMatMulShape, BatchMatMulKernel<false>, options)
      .Grad(BatchMatMulGrad)
      .Example({Shape{2, 2, 3}, Shape{2, 3, 4}})
      .Example({Shape{2, 3, 2}, Shape{2, 4, 3}}, {{"adj_x", true}, {"adj_y", true}});
  const AttributeMap none,
      doubles = {{"Ta", DType::kDouble}, {"Tb", DType::kDouble}, {"Tout", DType::kDouble}};
  for (const auto& [name, types] : {std::pair("BatchMatMulV2", none), {"BatchMatMulV3", doubles}}) {
    const auto with = [&](const char* adjoint) {
      AttributeMap attrs = types;
      attrs.Set(adjoint, true);
      return attrs;
    };
    OpBuilder op = ops.Get(name).Shape(BatchMatMulShape);
    if (types.empty()) {
      op.Kernel(kCpu, BatchMatMulKernel<true>, options);
    } else {
      AddMixedKernels(op, options);
    }
    op.Grad(BatchMatMulV2Grad)
        .Example({Shape{2, 2, 3}, Shape{2, 3, 4}})
        .Example({Shape{2, 1, 3, 2}, Shape{5, 3, 4}}, with("adj_x"))
        .Example({Shape{2, 3}, Shape{2, 4, 3}}, with("adj_y"));
  }
}

}  // namespace tenon
