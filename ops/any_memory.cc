// SPDX-License-Identifier: Apache-2.0
#include "ops/any_memory.h"

#include "core/device/device_queue.h"
#include "ops/elements.h"
#include "ops/math/accumulate.h"

namespace tenon {

StatusOr<Tensor> ZerosOnDevice(const KernelContext& ctx, DType dtype, const Shape& shape) {
  TENON_ASSIGN_OR_RETURN(Tensor zeros, Tensor::Allocate(CpuAllocator(), dtype, shape));
  ZeroElements(&zeros);
  DeviceQueue* const queue = ctx.device().queue();
  if (queue == nullptr || !IsPlain(dtype)) return zeros;
  return queue->CopyToDevice(zeros);
}

void CopyInMemory(const Tensor& from, int64_t i, Tensor* to, int64_t j, int64_t count) {
  if (count <= 0) return;
  if (to->IsHostMemory()) return CopyElements(from, i, to, j, count);
  to->allocator().Copy(ElementAt(*to, j), ElementAt(from, i), count * SizeOf(to->dtype()));
}

StatusOr<Tensor> AddOnHost(const KernelContext&, const Tensor& a, const Tensor& b) {
  if (a.IsHostMemory() && b.IsHostMemory()) return SumOf(a, b);
  return Unimplemented("cannot add up ", a.dtype(), " in the device's memory");
}

}  // namespace tenon
