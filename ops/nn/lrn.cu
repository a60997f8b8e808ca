// SPDX-License-Identifier: Apache-2.0
#include "ops/nn/lrn.h"

#include "ops/cuda/element.cuh"
#include "ops/cuda/kernel_types.h"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/register.h"

namespace tenon::cuda {
namespace {

/// The sum of term(i) for the elements at most radius channels from element `at` of rows of `n`.
template <typename Term>
__device__ float SumNear(const LrnAttrs& lrn, int64_t n, int64_t at, Term term) {
  const int64_t c = at % n;
  const int64_t first = c > lrn.radius ? at - lrn.radius : at - c;
  const int64_t last = c + lrn.radius < n ? at + lrn.radius : at - c + n - 1;
  float sum = 0;
  for (int64_t i = first; i <= last; ++i) sum += term(i);
  return sum;
}

/// norm^-beta. The exponents that networks use go by square roots.
__device__ float Power(const LrnAttrs& lrn, float norm) {
  if (lrn.beta == 0.5f) return 1 / sqrtf(norm);
  if (lrn.beta == 0.75f) return 1 / (sqrtf(norm) * sqrtf(sqrtf(norm)));
  if (lrn.beta == 1) return 1 / norm;
  return powf(norm, -lrn.beta);
}

template <typename T>
__device__ float NormAt(const LrnAttrs& lrn, int64_t n, const T* x, int64_t i) {
  return lrn.bias + lrn.alpha * SumNear(lrn, n, i, [x](int64_t k) {
                      const float v = Widen(x[k]);
                      return v * v;
                    });
}

template <typename T>
struct Normalize {
  LrnAttrs lrn;
  int64_t n;
  const T* x;
  T* y;
  __device__ void operator()(int64_t i) const {
    y[i] = Narrow<T>(Widen(x[i]) * Power(lrn, NormAt(lrn, n, x, i)));
  }
};

/// norms[i], and terms[i] = dy * y / norm.
template <typename T>
struct GradTerms {
  LrnAttrs lrn;
  int64_t n;
  const T *dy, *x, *y;
  float *norms, *terms;
  __device__ void operator()(int64_t i) const {
    norms[i] = NormAt(lrn, n, x, i);
    terms[i] = Widen(dy[i]) * Widen(y[i]) / norms[i];
  }
};

/// dx = dy * norm^-beta - 2 alpha beta x * the sum of terms near.
template <typename T>
struct Gradient {
  LrnAttrs lrn;
  int64_t n;
  const T *dy, *x;
  const float *norms, *terms;
  T* dx;
  __device__ void operator()(int64_t i) const {
    const float sum = SumNear(lrn, n, i, [this](int64_t k) { return terms[k]; });
    dx[i] = Narrow<T>(Widen(dy[i]) * Power(lrn, norms[i]) -
                      2 * lrn.alpha * lrn.beta * Widen(x[i]) * sum);
  }
};

using LrnTypes = TypeList<float, Half, BFloat16>;

Status LrnKernel(KernelContext& ctx, int64_t radius, float bias, float alpha, float beta) {
  const Tensor& x = ctx.input(0);
  TENON_ASSIGN_OR_RETURN(const LrnAttrs lrn, CheckLrn(x, radius, bias, alpha, beta));
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, x.shape()));
  return DispatchStatus(x.dtype(), LrnTypes(), [&]<typename T>(T) {
    return ForEach(ctx, x.num_elements(), Normalize<T>{lrn, x.dim(3), x.data<T>(), y->data<T>()});
  });
}

Status LrnGradKernel(KernelContext& ctx, int64_t radius, float bias, float alpha, float beta) {
  const Tensor &dy = ctx.input(0), &x = ctx.input(1), &y = ctx.input(2);
  TENON_ASSIGN_OR_RETURN(const LrnAttrs lrn, CheckLrn(x, radius, bias, alpha, beta));
  TENON_RETURN_IF_ERROR(CheckLrnGrad(ctx));
  TENON_ASSIGN_OR_RETURN(Tensor * dx, ctx.AllocateOutput(0, x.shape()));
  TENON_ASSIGN_OR_RETURN(Tensor norms, ctx.AllocateTemp(DType::kFloat, x.shape()));
  TENON_ASSIGN_OR_RETURN(Tensor terms, ctx.AllocateTemp(DType::kFloat, x.shape()));
  const int64_t count = x.num_elements(), n = x.dim(3);
  return DispatchStatus(x.dtype(), LrnTypes(), [&]<typename T>(T) -> Status {
    TENON_RETURN_IF_ERROR(ForEach(ctx, count,
                                  GradTerms<T>{lrn, n, dy.data<T>(), x.data<T>(), y.data<T>(),
                                               norms.data<float>(), terms.data<float>()}));
    return ForEach(ctx, count,
                   Gradient<T>{lrn, n, dy.data<T>(), x.data<T>(), norms.data<float>(),
                               terms.data<float>(), dx->data<T>()});
  });
}

}  // namespace
}  // namespace tenon::cuda

namespace tenon {

void RegisterCudaLrn(OpRegistry& ops) {
  const KernelOptions options = {.types = {{"T", DTypesOf(cuda::LrnTypes())}},
                                 .attrs = {"depth_radius", "bias", "alpha", "beta"}};
  cuda::AddKernel(ops, "LRN", cuda::LrnKernel, options);
  cuda::AddKernel(ops, "LRNGrad", cuda::LrnGradKernel, options);
}

}  // namespace tenon
