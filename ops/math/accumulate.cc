// SPDX-License-Identifier: Apache-2.0
#include "ops/math/accumulate.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "core/base/parallel.h"
#include "core/op/op_registry.h"
#include "core/tensor/variant.h"
#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/maths.h"

namespace tenon {

StatusOr<Tensor> SumOf(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) {
    return InvalidArgument("cannot add up gradients of shapes ", a.shape(), " and ", b.shape());
  }
  if (a.dtype() != b.dtype()) {
    return InvalidArgument("cannot add ", a.dtype(), " and ", b.dtype());
  }
  TENON_ASSIGN_OR_RETURN(Tensor sum, Tensor::Allocate(CpuAllocator(), a.dtype(), a.shape()));
  if (a.dtype() == DType::kVariant) {
    for (int64_t i = 0; i < a.num_elements(); ++i) {
      const VariantRef &x = a.data<Variant>()[i].value, &y = b.data<Variant>()[i].value;
      if (x == nullptr || y == nullptr) return InvalidArgument("an empty variant cannot be added");
      TENON_ASSIGN_OR_RETURN(sum.data<Variant>()[i].value, x->Plus(*y));
    }
    return sum;
  }
  const bool known = Dispatch(a.dtype(), NumericTypes(), [&]<typename T>(T) {
    using C = ComputeType<T>;
    const T *x = a.data<T>(), *y = b.data<T>();
    T* out = sum.data<T>();
    SerialFor(a.num_elements(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) out[i] = T(Plus(C(x[i]), C(y[i])));
    });
  });
  if (!known) return InvalidArgument("cannot add up gradients of ", a.dtype());
  return sum;
}

StatusOr<Tensor> ZerosOf(const Tensor& x) {
  TENON_ASSIGN_OR_RETURN(Tensor zeros, Tensor::Allocate(CpuAllocator(), x.dtype(), x.shape()));
  if (x.dtype() != DType::kVariant) {
    ZeroElements(&zeros);
    return zeros;
  }
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    const VariantRef& value = x.data<Variant>()[i].value;
    if (value == nullptr) continue;
    TENON_ASSIGN_OR_RETURN(zeros.data<Variant>()[i].value, value->ZerosLike());
  }
  return zeros;
}

namespace {

/// Elements that are summed over all inputs before the next ones: they stay in the first cache.
constexpr int64_t kBlock = 2048;

template <typename T>
void AddBlock(absl::Span<const T* const> in, T* out, int64_t begin, int64_t end) {
  using C = ComputeType<T>;
  for (size_t k = 1; k < in.size(); ++k) {
    const T *a = k == 1 ? in[0] : out, *b = in[k];
    TENON_SIMD
    for (int64_t i = begin; i < end; ++i) out[i] = T(Plus(C(a[i]), C(b[i])));
  }
}

Status AddNKernel(KernelContext& ctx, const Tensor& first) {
  TENON_RETURN_IF_ERROR(CheckSameShape(ctx));
  if (ctx.num_inputs() == 1) return ctx.Return(first);
  const int64_t n = first.num_elements();
  TENON_ASSIGN_OR_RETURN(Tensor * sum, ctx.ForwardOrAllocate(0, 0, first.shape()));
  return DispatchStatus(first.dtype(), NumericTypes(), [&]<typename T>(T) {
    absl::InlinedVector<const T*, 8> in;
    for (int k = 0; k < ctx.num_inputs(); ++k) in.push_back(ctx.input(k).data<T>());
    T* out = sum->data<T>();
    ParallelFor(n, 0.3 * ctx.num_inputs(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i += kBlock)
        AddBlock<T>(in, out, i, std::min(end, i + kBlock));
    });
  });
}

Status AddVariantsKernel(KernelContext& ctx) {
  Tensor sum = ctx.input(0);
  for (int k = 1; k < ctx.num_inputs(); ++k) {
    TENON_ASSIGN_OR_RETURN(sum, SumOf(sum, ctx.input(k)));
  }
  return ctx.Return(std::move(sum));
}

void AddNGrad(GradContext& g) {
  for (int i = 0; i < g.num_inputs(); ++i) g.dx(i) = g.dy(0);
}

template <typename T>
double SumOfSquares(const T* x, int64_t n) {
  double lanes[16] = {};
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    TENON_SIMD
    for (int l = 0; l < 16; ++l) {
      const double v = static_cast<ComputeType<T>>(x[i + l]);
      lanes[l] += v * v;
    }
  }
  for (; i < n; ++i) {
    const double v = static_cast<ComputeType<T>>(x[i]);
    lanes[0] += v * v;
  }
  double sum = 0;
  for (const double l : lanes) sum += l;
  return sum;
}

Status L2LossKernel(KernelContext& ctx, const Tensor& x) {
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, Shape()));
  return DispatchStatus(x.dtype(), FloatTypes(), [&]<typename T>(T) {
    *y->data<T>() = static_cast<T>(SumOfSquares(x.data<T>(), x.num_elements()) / 2);
  });
}

}  // namespace

void RegisterAccumulate(OpRegistry& ops) {
  const KernelOptions variants = {.types = {{"T", {DType::kVariant}}}};
  ops.Get("ZerosLike")
      .Kernel(
          kCpu, +[](KernelContext& ctx) { return ctx.Return(ZerosOf(ctx.input(0))); }, variants);
  ops.Add("AddN", MergedShape, AddNKernel, {.types = {{"T", DTypesOf(NumericTypes())}}})
      .Kernel(kCpu, AddVariantsKernel, variants)
      .Grad(AddNGrad)
      .Example({Shape{2, 3}, Shape{2, 3}, Shape{2, 3}})
      .Example({Shape{2, 3}});
  ops.Add("L2Loss", ScalarShape, L2LossKernel)
      .Grad([](GradContext& g) { g.dx(0) = g.in(0) * g.dy(0); })
      .Example({Shape{2, 3}});
}

}  // namespace tenon
