// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "ops/cuda/elementwise.cuh"
#include "ops/cuda/register.h"
#include "ops/math/convert.h"

namespace tenon {
namespace cuda {
namespace {

using CastTypes = decltype(ConcatTypes(RealTypes(), TypeList<bool>()));

template <typename C>
struct CastTo {
  __device__ static C Apply(auto x) { return Convert<C>(x); }
};

template <typename From, typename To>
void LaunchCast(cudaStream_t stream, const void* x, void* y, int64_t n) {
  const From* in = static_cast<const From*>(x);
  To* out = static_cast<To*>(y);
  const bool packs = IsPackAligned(in) && IsPackAligned(out);
  UnaryPass<CastTo<ComputeType<To>>, From, To>
      <<<GridBlocks(packs ? n / kPack : n), kBlockThreads, 0, stream>>>(in, out, n, packs);
}

UnaryLaunch LaunchFor(DType from, DType to) {
  UnaryLaunch launch = nullptr;
  Dispatch(from, CastTypes(), [&]<typename From>(From) {
    Dispatch(to, CastTypes(), [&]<typename To>(To) { launch = &LaunchCast<From, To>; });
  });
  return launch;
}

/// Clears the bits of the mantissa that the result has no room for, so that it is truncated.
template <typename T, typename Bits>
struct ClearLowBits {
  const T* x;
  T* y;
  Bits mask;
  __device__ void operator()(int64_t i) const {
    y[i] = std::bit_cast<T>(std::bit_cast<Bits>(x[i]) & mask);
  }
};

template <typename T, typename Bits>
Status Truncate(KernelContext& ctx, Tensor* x, int bits) {
  TENON_ASSIGN_OR_RETURN(Tensor y, ctx.AllocateTemp(x->dtype(), x->shape()));
  const Bits mask = ~((Bits{1} << bits) - 1);
  TENON_RETURN_IF_ERROR(
      ForEach(ctx, x->num_elements(), ClearLowBits<T, Bits>{x->data<T>(), y.data<T>(), mask}));
  *x = std::move(y);
  return OkStatus();
}

Status CastKernel(KernelContext& ctx, DType from, DType to, bool truncate) {
  Tensor x = ctx.input(0);
  if (from == to) return ctx.Return(std::move(x));
  const int lost_bits = truncate ? LostBits(from, to) : 0;
  if (lost_bits > 0 && from == DType::kFloat) {
    TENON_RETURN_IF_ERROR((Truncate<float, uint32_t>(ctx, &x, lost_bits)));
  } else if (lost_bits > 0 && from == DType::kDouble) {
    TENON_RETURN_IF_ERROR((Truncate<double, uint64_t>(ctx, &x, lost_bits)));
  }
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, x.shape()));
  if (x.num_elements() == 0) return OkStatus();
  LaunchFor(from, to)(StreamOf(ctx), x.raw_data(), y->raw_data(), x.num_elements());
  return LaunchStatus();
}

}  // namespace
}  // namespace cuda

void RegisterCudaCast(OpRegistry& ops) {
  const DTypeVector types = DTypesOf(cuda::CastTypes());
  cuda::AddKernel(
      ops, "Cast", cuda::CastKernel,
      {.types = {{"SrcT", types}, {"DstT", types}}, .attrs = {"SrcT", "DstT", "Truncate"}});
}

}  // namespace tenon
