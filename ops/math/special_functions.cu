// SPDX-License-Identifier: Apache-2.0
#include "ops/math/special_functions.h"

#include "ops/cuda/elementwise.cuh"
#include "ops/cuda/register.h"

namespace tenon {
namespace cuda {
namespace {

/// An operand of Betainc, whose one element may stand for all.
template <typename T>
struct Operand {
  explicit Operand(const Tensor& t) : elements(t.data<T>()), step(t.rank() == 0 ? 0 : 1) {}
  __device__ T operator[](int64_t i) const { return elements[i * step]; }
  const T* elements;
  int64_t step;
};

template <typename T>
struct BetaincElement {
  Operand<T> a, b, x;
  T* z;
  __device__ void operator()(int64_t i) const { z[i] = BetaincOf(a[i], b[i], x[i]); }
};

Status BetaincKernel(KernelContext& ctx, const Tensor& a, const Tensor& b, const Tensor& x) {
  TENON_ASSIGN_OR_RETURN(const Shape shape, BetaincOutput(ctx));
  TENON_ASSIGN_OR_RETURN(Tensor * z, ctx.AllocateOutput(0, shape));
  return DispatchStatus(x.dtype(), TypeList<float, double>(), [&]<typename T>(T) {
    return ForEach(ctx, z->num_elements(),
                   BetaincElement<T>{Operand<T>(a), Operand<T>(b), Operand<T>(x), z->data<T>()});
  });
}

}  // namespace
}  // namespace cuda

void RegisterCudaSpecialFunctions(OpRegistry& ops) {
  cuda::AddUnaryList(ops, elementwise::SpecialFunctions());
  cuda::AddBinaryList(ops, elementwise::SpecialFunctions2());
  cuda::AddKernel(ops, "Betainc", cuda::BetaincKernel, {});
}

}  // namespace tenon
