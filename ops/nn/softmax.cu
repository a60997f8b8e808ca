// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda/kernel_types.h"
#include "ops/cuda/register.h"
#include "ops/nn/softmax_rows.cuh"

namespace tenon {
namespace cuda {
namespace {

/// `y` may be `x`: a thread writes what it alone reads, when all have read the row twice.
template <typename T, bool kLogarithm>
struct SoftmaxRow {
  const T* x;
  T* y;
  int64_t n;

  template <int kThreads>
  __device__ void operator()(int64_t r) const {
    using C = ComputeType<T>;
    const T* in = x + r * n;
    const auto read = [in](int64_t i) { return Widen(in[i]); };
    const C max = VectorMax<kThreads>(read, n);
    const C sum = RowExpSum<kThreads>(read, n, max);
    const C log_sum = kLogarithm ? std::log(sum) : C(0), scale = C(1) / sum;
    for (int64_t i = threadIdx.x % kThreads; i < n; i += kThreads) {
      const C v = read(i) - max;
      y[r * n + i] = Narrow<T>(kLogarithm ? v - log_sum : std::exp(v) * scale);
    }
  }
};

template <bool kLogarithm>
Status SoftmaxKernel(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  if (x.rank() < 1) return InvalidArgument("logits must have >= 1 dimension, got ", x.shape());
  const void* in = x.raw_data();
  const int64_t n = x.dim(x.rank() - 1), total = x.num_elements();
  const DType type = x.dtype();
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.ForwardOrAllocate(0, 0, x.shape()));
  if (total == 0) return OkStatus();
  return DispatchStatus(type, FloatTypes(), [&]<typename T>(T) {
    return ForEachRow(ctx, total / n, n,
                      SoftmaxRow<T, kLogarithm>{static_cast<const T*>(in), y->data<T>(), n});
  });
}

}  // namespace
}  // namespace cuda

void RegisterCudaSoftmax(OpRegistry& ops) {
  const KernelOptions floats = {.types = {{"T", DTypesOf(FloatTypes())}}};
  cuda::AddKernel(ops, "Softmax", cuda::SoftmaxKernel<false>, floats);
  cuda::AddKernel(ops, "LogSoftmax", cuda::SoftmaxKernel<true>, floats);
}

}  // namespace tenon
