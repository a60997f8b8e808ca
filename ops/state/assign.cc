// SPDX-License-Identifier: Apache-2.0
#include "ops/state/assign.h"

#include "core/device/device_queue.h"
#include "core/memory/capture_memory.h"
#include "ops/state/variable_update.h"

namespace tenon {
namespace {

/// What an error says before the shapes that were expected and found.
struct ShapeWords {
  std::string_view expected, found;
};

/// Whether the device decides what is in the variable's memory.
StatusOr<bool> StaysInPlace(const KernelContext& ctx, const Tensor& current, const Tensor& value) {
  const bool fits = current.valid() && !current.IsHostMemory() && current.shape() == value.shape();
  if (dynamic_cast<const CaptureMemory*>(&ctx.device().allocator()) != nullptr) {
    if (!fits) return Unimplemented("a capture cannot change where a variable is");
    return true;
  }
  // What a capture has given is its own.
  if (&value.allocator() != &ctx.device().allocator()) return fits;
  return fits && ctx.device().queue()->FailureOf(ctx.device_run().id) != nullptr;
}

/// A copy in the device's own memory.
StatusOr<Tensor> CopyOnDevice(const KernelContext& ctx, const Tensor& value) {
  Allocator& memory = ctx.device().allocator();
  TENON_ASSIGN_OR_RETURN(Tensor copy, Tensor::Allocate(memory, value.dtype(), value.shape()));
  memory.Copy(copy.raw_data(), value.raw_data(), value.num_bytes());
  return copy;
}

Status AssignValue(KernelContext& ctx, VariableResource* variable, bool validate_shape,
                   ShapeWords words, QueueAssignment queue) {
  Tensor value = ctx.TakeInput(1);
  if (validate_shape) {
    const Tensor current = variable->Read();
    const PartialShape wanted = current.valid() ? current.shape() : variable->shape();
    if (!wanted.IsCompatibleWith(value.shape())) {
      return InvalidArgument(words.expected, wanted, words.found, value.shape());
    }
  }
  if (queue != nullptr) {
    TENON_ASSIGN_OR_RETURN(const bool stays, StaysInPlace(ctx, variable->Read(), value));
    if (stays) {
      return variable->Modify([&](const Tensor& current, Tensor* next) -> Status {
        TENON_RETURN_IF_ERROR(CheckUpdateShape(current, value));
        return queue(ctx, current, value, next);
      });
    }
    if (&value.allocator() != &ctx.device().allocator()) {
      TENON_ASSIGN_OR_RETURN(value, CopyOnDevice(ctx, value));
    }
  }
  return variable->Assign(std::move(value));
}

}  // namespace

Status MissingReference() { return InvalidArgument("the first input is not a reference"); }

Status AssignToReference(KernelContext& ctx, bool validate_shape, QueueAssignment queue) {
  VariableResource* const variable = ctx.ref(0);
  if (variable == nullptr) return MissingReference();
  TENON_RETURN_IF_ERROR(AssignValue(
      ctx, variable, validate_shape,
      {"Assign requires shapes of both tensors to match. lhs shape= ", " rhs shape= "}, queue));
  ctx.set_output_ref(0, variable);
  return OkStatus();
}

Status AssignToHandle(KernelContext& ctx, const ResourceCache<VariableResource>& cache,
                      bool validate_shape, QueueAssignment queue) {
  TENON_ASSIGN_OR_RETURN(const ResourceHandle* handle, HandleInput(ctx, 0));
  const DType dtype = ctx.input(1).dtype();
  auto found = cache.Find(ctx.resources(), *handle);
  if (!found.ok()) {
    PartialShape declared;
    if (!handle->dtypes_and_shapes.empty()) declared = handle->dtypes_and_shapes[0].second;
    found = ctx.resources().LookupOrCreate<VariableResource>(handle->container, handle->name, [&] {
      return std::make_shared<VariableResource>(dtype, declared, std::string(handle->name));
    });
    TENON_RETURN_IF_ERROR(found);
  }
  VariableResource& variable = **found;
  if (variable.dtype() != dtype) {
    return InvalidArgument("Trying to assign variable with wrong dtype. Expected ",
                           variable.dtype(), " got ", dtype);
  }
  return AssignValue(
      ctx, &variable, validate_shape,
      {"Trying to assign to variable with tensor with wrong shape. Expected ", " got "}, queue);
}

}  // namespace tenon
