// SPDX-License-Identifier: Apache-2.0
#include "ops/state/variables.h"

namespace tenon {

StatusOr<const ResourceHandle*> HandleInput(const KernelContext& ctx, int i) {
  const Tensor& t = ctx.input(i);
  if (t.dtype() != DType::kResource || t.num_elements() != 1) {
    return InvalidArgument("input ", i, " must be a resource handle, found ", t.dtype(), t.shape());
  }
  const ResourceHandle& handle = t.scalar<ResourceHandle>();
  if (!handle.device.empty() && handle.device != ctx.device().name()) {
    return InvalidArgument("Trying to access resource ", handle.name, " located in device ",
                           handle.device, " from device ", ctx.device().name());
  }
  return &handle;
}

Status UninitializedVariable(const ResourceStore& store, const ResourceHandle& handle) {
  const std::string_view container =
      handle.container.empty() ? store.default_container() : std::string_view(handle.container);
  return FailedPrecondition(
      "Could not find variable ", handle.name,
      ". This could mean that the variable has been deleted. In TF1, it can also mean the variable "
      "is uninitialized. Debug info: container=",
      container, ", status error message=Resource ", container, "/", handle.name,
      "/N10tensorflow3VarE does not exist.");
}

StatusOr<std::shared_ptr<VariableResource>> VariableInput::Find(const KernelContext& ctx,
                                                                DType dtype, int i) const {
  std::shared_ptr<VariableResource> found;
  if (VariableResource* ref = ctx.ref(i)) {
    // The kernel that made the reference keeps the variable; this pointer only borrows it.
    found = std::shared_ptr<VariableResource>(std::shared_ptr<VariableResource>(), ref);
  } else {
    TENON_ASSIGN_OR_RETURN(const ResourceHandle* handle, HandleInput(ctx, i));
    auto resource = cache_.Find(ctx.resources(), *handle);
    if (!resource.ok()) return UninitializedVariable(ctx.resources(), *handle);
    found = *std::move(resource);
  }
  if (dtype != DType::kInvalid && found->dtype() != dtype) {
    return InvalidArgument("Trying to read variable with wrong dtype. Expected ", dtype, " got ",
                           found->dtype());
  }
  return found;
}

StatusOr<Tensor> ReadVariable(const KernelContext& ctx, const VariableInput& input, DType dtype) {
  TENON_ASSIGN_OR_RETURN(const auto variable, input.Find(ctx, dtype));
  Tensor value = variable->Read();
  if (value.valid()) return value;
  return UninitializedVariable(ctx.resources(), ctx.input(0).scalar<ResourceHandle>());
}

}  // namespace tenon
