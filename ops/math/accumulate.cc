// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/op_registry.h"
#include "core/parallel.h"
#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/maths.h"

namespace tenon {
namespace {

/// Elements that are summed over all inputs before the next ones: they stay in the first cache.
constexpr int64_t kBlock = 2048;

template <typename T>
void AddBlock(const std::vector<const T*>& in, T* out, int64_t begin, int64_t end) {
  using C = ComputeType<T>;
  for (size_t k = 1; k < in.size(); ++k) {
    const T *a = k == 1 ? in[0] : out, *b = in[k];
    TENON_SIMD
    for (int64_t i = begin; i < end; ++i) out[i] = T(Plus(C(a[i]), C(b[i])));
  }
}

Status AddNKernel(KernelContext& ctx) {
  const Tensor& first = ctx.input(0);
  TENON_RETURN_IF_ERROR(CheckSameShape(ctx));
  if (ctx.num_inputs() == 1) return ctx.Return(first);
  const int64_t n = first.num_elements();
  TENON_ASSIGN_OR_RETURN(Tensor * sum, ctx.ForwardOrAllocate(0, 0, first.shape()));
  return DispatchStatus(first.dtype(), NumericTypes(), [&]<typename T>(T) {
    std::vector<const T*> in;
    for (int k = 0; k < ctx.num_inputs(); ++k) in.push_back(ctx.input(k).data<T>());
    T* out = sum->data<T>();
    ParallelFor(n, 0.3 * ctx.num_inputs(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i += kBlock) AddBlock(in, out, i, std::min(end, i + kBlock));
    });
  });
}

void AddNGrad(GradContext& g) {
  for (Output& dx : g.dxs()) dx = g.dy(0);
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

Status L2LossKernel(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, Shape()));
  return DispatchStatus(x.dtype(), FloatTypes(), [&]<typename T>(T) {
    *y->data<T>() = static_cast<T>(SumOfSquares(x.data<T>(), x.num_elements()) / 2);
  });
}

}  // namespace

void RegisterAccumulate(OpRegistry& ops) {
  ops.Add("AddN", MergedShape, AddNKernel, {.types = {{"T", DTypesOf(NumericTypes())}}})
      .Grad(AddNGrad)
      .Example({Shape{2, 3}, Shape{2, 3}, Shape{2, 3}})
      .Example({Shape{2, 3}});
  ops.Add("L2Loss", ScalarShape, L2LossKernel)
      .Grad([](GradContext& g) { g.dx(0) = g.in(0) * g.dy(0); })
      .Example({Shape{2, 3}});
}

}  // namespace tenon
