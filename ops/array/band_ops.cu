// SPDX-License-Identifier: Apache-2.0
#include "ops/array/band.h"
#include "ops/cuda/element.cuh"
#include "ops/cuda/kernel_types.h"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/register.h"

namespace tenon {
namespace cuda {
namespace {

/// Writes element k: what is in the band, else 0. E has the size of an element.
template <typename E>
struct BandElement {
  Band band;
  const E* from;
  E* to;
  __device__ void operator()(int64_t k) const {
    const int64_t i = k / band.columns % band.rows, j = k % band.columns;
    to[k] = j >= band.First(i) && j < band.End(i) ? from[k] : E{};
  }
};

Status BandPartKernel(KernelContext& ctx, const Tensor& in) {
  TENON_ASSIGN_OR_RETURN(const Band band, ReadBand(ctx));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
  Status status;
  DispatchBytes(in.dtype(), [&]<typename E>(E) {
    status.Update(ForEach(ctx, in.num_elements(),
                          BandElement<E>{band, static_cast<const E*>(in.raw_data()),
                                         static_cast<E*>(out->raw_data())}));
  });
  return status;
}

}  // namespace
}  // namespace cuda

void RegisterCudaBandPart(OpRegistry& ops) {
  for (const char* name : {"MatrixBandPart", "BatchMatrixBandPart"}) {
    cuda::AddKernel(ops, name, cuda::BandPartKernel, {.types = {{"T", DTypesOf(PlainTypes())}}});
  }
}

}  // namespace tenon
