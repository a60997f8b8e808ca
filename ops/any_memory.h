// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op/kernel.h"

// What kernels that serve every memory (kAnyMemory) do with tensors into which they do not look.

namespace tenon {

/// Zeros, false or empty text in the memory in which the kernel's device has such elements;
/// ResourceExhausted when that is out.
StatusOr<Tensor> ZerosOnDevice(const KernelContext& ctx, DType dtype, const Shape& shape);

/// Copies `count` elements from number `i` of `from` on to number `j` of `to`, of the same dtype
/// and in the same memory; on a device with a queue, in the order of its kernels.
void CopyInMemory(const Tensor& from, int64_t i, Tensor* to, int64_t j, int64_t count);

/// The sum of two tensors of one dtype and shape, which a device's kernels make. Unimplemented for
/// dtypes that they do not add up.
using AddTensors = StatusOr<Tensor> (*)(const KernelContext& ctx, const Tensor& a, const Tensor& b);

/// That of the host.
StatusOr<Tensor> AddOnHost(const KernelContext& ctx, const Tensor& a, const Tensor& b);

}  // namespace tenon
