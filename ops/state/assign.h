// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/state/variables.h"

// The kernels of Assign and AssignVariableOp for all devices.

namespace tenon {

/// Queues on a device that `next` gets the elements of `value`, or those of `current` when the step
/// has failed until then. `next` may be `current`.
using QueueAssignment = Status (*)(const KernelContext& ctx, const Tensor& current,
                                   const Tensor& value, Tensor* next);

/// Makes input 1 the value of the variable that input 0 refers to, and gives the reference on: the
/// same tensor when nobody else has its buffer, else a copy, since the variable updates it in place
/// (VariableResource::Assign). With `validate_shape`, InvalidArgument for a value of another
/// shape than the present one, or the declared one before there is any. ResourceExhausted when
/// memory is out.
///
/// With `queue`, a variable that has a value of that shape keeps its memory, and the device decides
/// what is in it: in a step that may have failed, and where tensors are a capture's
/// (QueueCapture).
Status AssignToReference(KernelContext& ctx, bool validate_shape, QueueAssignment queue = nullptr);

/// The same by the handle in input 0, whose variable is made when there is none. InvalidArgument
/// for one of another dtype.
Status AssignToHandle(KernelContext& ctx, const ResourceCache<VariableResource>& cache,
                      bool validate_shape, QueueAssignment queue = nullptr);

/// What an op says that wants a reference as its first input.
Status MissingReference();

}  // namespace tenon
