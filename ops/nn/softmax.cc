// SPDX-License-Identifier: Apache-2.0
#include "core/base/parallel.h"
#include "core/memory/counted_memory.h"
#include "core/op/op_registry.h"
#include "ops/composition.h"
#include "ops/nn/nn_ops.h"
#include "ops/nn/softmax_rows.h"

namespace tenon {
namespace {

constexpr double kExpNs = 1.5;

template <typename C>
void SoftmaxRow(const C* x, C* y, int64_t n) {
  const C sum = RowExp(x, VectorMax(x, n), y, n);
  const C scale = C(1) / sum;
  TENON_SIMD
  for (int64_t i = 0; i < n; ++i) y[i] *= scale;
}

/// `scratch` has room for n values.
template <typename C>
void LogSoftmaxRow(const C* x, C* y, int64_t n, C* scratch) {
  const C max = VectorMax(x, n);
  const C log_sum = std::log(RowExp(x, max, scratch, n));
  TENON_SIMD
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] - max - log_sum;
}

/// Exponentials are made of so many floats at once, at least, where rows are shorter.
constexpr int64_t kExponentials = 512;

/// SoftmaxRow of each row, with the exponentials of all together.
void ShortSoftmaxRows(const float* x, float* y, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* const in = x + r * n;
    float* const out = y + r * n;
    const float max = VectorMax(in, n);
    for (int64_t i = 0; i < n; ++i) out[i] = in[i] - max;
  }
  VectorExp(y, y, rows * n);
  for (int64_t r = 0; r < rows; ++r) {
    float* const out = y + r * n;
    const float scale = 1 / static_cast<float>(VectorSum(out, n));
    for (int64_t i = 0; i < n; ++i) out[i] *= scale;
  }
}

template <typename T>
void Rows(bool logarithm, const T* x, T* y, int64_t rows, int64_t n) {
  using C = ComputeType<T>;
  if constexpr (std::is_same_v<T, float>) {
    if (!logarithm && n < kExponentials / 4) {
      const int64_t together = kExponentials / n, groups = (rows + together - 1) / together;
      const double cost = kExpNs * static_cast<double>(together * n);
      return ParallelFor(groups, cost, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin * together; r < std::min(rows, end * together); r += together) {
          ShortSoftmaxRows(x + r * n, y + r * n, std::min(together, rows - r), n);
        }
      });
    }
  }
  ParallelFor(rows, kExpNs * static_cast<double>(n) + 20, [&](int64_t begin, int64_t end) {
    CountedVector<C> scratch(std::is_same_v<C, T> && !logarithm ? 0 : n), wide(scratch.size());
    for (int64_t r = begin; r < end; ++r) {
      const T* in = x + r * n;
      T* out = y + r * n;
      if constexpr (std::is_same_v<C, T>) {
        logarithm ? LogSoftmaxRow(in, out, n, scratch.data()) : SoftmaxRow(in, out, n);
      } else {
        for (int64_t i = 0; i < n; ++i) wide[i] = static_cast<C>(in[i]);
        logarithm ? LogSoftmaxRow(wide.data(), wide.data(), n, scratch.data())
                  : SoftmaxRow(wide.data(), wide.data(), n);
        for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(wide[i]);
      }
    }
  });
}

template <bool kLogarithm>
Status SoftmaxKernel(KernelContext& ctx, const Tensor& x) {
  if (x.rank() < 1) return InvalidArgument("logits must have >= 1 dimension, got ", x.shape());
  const void* in = x.raw_data();
  const int64_t n = x.dim(x.rank() - 1), total = x.num_elements();
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.ForwardOrAllocate(0, 0, x.shape()));
  if (total == 0) return OkStatus();
  return DispatchStatus(x.dtype(), FloatTypes(), [&]<typename T>(T) {
    Rows(kLogarithm, static_cast<const T*>(in), y->data<T>(), total / n, n);
  });
}

Status AtLeastVector(ShapeContext& c) { return c.Return(c.WithRankAtLeast(0, 1)); }

void SoftmaxGrad(GradContext& g) {
  const Output y = g.out(0), dy = g.dy(0);
  g.dx(0) = (dy - Sum(dy * y, {-1}, {.keep_dims = true})) * y;
}

void LogSoftmaxGrad(GradContext& g) {
  const Output softmax = Exp(g.out(0)), dy = g.dy(0);
  g.dx(0) = dy - Sum(dy, {-1}, {.keep_dims = true}) * softmax;
}

}  // namespace

void RegisterSoftmax(OpRegistry& ops) {
  ops.Add("Softmax", AtLeastVector, SoftmaxKernel<false>).Grad(SoftmaxGrad);
  ops.Add("LogSoftmax", AtLeastVector, SoftmaxKernel<true>).Grad(LogSoftmaxGrad);
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    ops.Get(op).Example({Shape{2, 3}}).Example({Shape{2, 3, 4}}).Example({Shape{5}});
  }
}

}  // namespace tenon
