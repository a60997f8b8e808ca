// SPDX-License-Identifier: Apache-2.0
#include "ops/math/check_numerics.h"

#include "ops/cuda/check.cuh"
#include "ops/cuda/element.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/register.h"

namespace tenon {
namespace cuda {
namespace {

/// What was found, as bits.
enum Found : unsigned { kNan = 1, kNegative = 2, kPositive = 4 };

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    FindNumerics(const T* x, int64_t n, unsigned* found) {
  unsigned bits = 0;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += stride) {
    const auto v = Widen(x[i]);
    if (IsNan(v)) {
      bits |= kNan;
    } else if (IsNan(v - v)) {
      bits |= v < 0 ? kNegative : kPositive;
    }
  }
  if (bits != 0) atomicOr(found, bits);
}

/// After the whole tensor was looked at, so that the error says all that there is.
__global__ void NoteNumerics(const unsigned* found, RunCheck check) {
  if (*found != 0) NoteFailure(check, *found);
}

template <bool kSigned>
Status CheckNumericsKernel(KernelContext& ctx, const Tensor& x, const NodeIdentity& node,
                           const std::string& message) {
  if (x.num_elements() == 0) return ctx.Return(x);
  TENON_ASSIGN_OR_RETURN(Tensor found, ctx.AllocateTemp(DType::kUInt32, Shape()));
  unsigned* bits = found.data<uint32_t>();
  TENON_RETURN_IF_ERROR(QueueStatus(cudaMemsetAsync(bits, 0, sizeof(*bits), StreamOf(ctx))));
  const Status queued = DispatchStatus(x.dtype(), FloatTypes(), [&]<typename T>(T) {
    FindNumerics<T><<<GridBlocks(x.num_elements()), kBlockThreads, 0, StreamOf(ctx)>>>(
        x.data<T>(), x.num_elements(), bits);
    return LaunchStatus();
  });
  TENON_RETURN_IF_ERROR(queued);
  RunCheck check = AddCheck(ctx, node, [message](uint64_t word) {
    const FoundNumerics n = {(word & kNan) != 0, (word & kNegative) != 0, (word & kPositive) != 0};
    return NumericsError(n, kSigned, message);
  });
  NoteNumerics<<<1, 1, 0, StreamOf(ctx)>>>(bits, check);
  TENON_RETURN_IF_ERROR(LaunchStatus());
  return ctx.Return(x);
}

}  // namespace
}  // namespace cuda

void RegisterCudaCheckNumerics(OpRegistry& ops) {
  const KernelOptions options = {.types = {{"T", DTypesOf(FloatTypes())}}, .attrs = {"message"}};
  cuda::AddKernel(ops, "CheckNumerics", cuda::CheckNumericsKernel<false>, options);
  cuda::AddKernel(ops, "CheckNumericsV2", cuda::CheckNumericsKernel<true>, options);
}

}  // namespace tenon
