// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op/function_kernel.h"
#include "core/tensor/resource_store.h"

// Finding the variable that an argument of a kernel names.

namespace tenon {

/// Remembers the resource that a handle named last time, so that a kernel that always gets the
/// same handle looks it up once. Forgets it when the store has removed anything since. Thread-safe.
template <typename T>
class ResourceCache : public KernelState {
 public:
  /// The resource of that handle in `store`; NotFound when there is none.
  StatusOr<std::shared_ptr<T>> Find(const ResourceStore& store,
                                    const ResourceHandle& handle) const {
    MutexLock lock(mu_);
    // Read before the lookup: a removal in between makes the next call look again.
    const uint64_t removals = store.removals();
    if (found_ != nullptr && &store == store_ && removals == removals_ && handle.name == name_ &&
        handle.container == container_) {
      return found_;
    }
    TENON_ASSIGN_OR_RETURN(std::shared_ptr<T> found,
                           store.Lookup<T>(handle.container, handle.name));
    found_ = found;
    store_ = &store;
    removals_ = removals;
    name_ = handle.name;
    container_ = handle.container;
    return found;
  }

 private:
  mutable Mutex mu_;
  mutable std::shared_ptr<T> found_ ABSL_GUARDED_BY(mu_);
  mutable const ResourceStore* store_ ABSL_GUARDED_BY(mu_) = nullptr;
  mutable uint64_t removals_ ABSL_GUARDED_BY(mu_) = 0;
  mutable std::string name_ ABSL_GUARDED_BY(mu_);
  mutable std::string container_ ABSL_GUARDED_BY(mu_);
};

/// The handle in input `i`, a resource scalar of this device; InvalidArgument otherwise.
StatusOr<const ResourceHandle*> HandleInput(const KernelContext& ctx, int i);

/// An input of a kernel as a variable: a reference or a resource handle. One object an input.
class VariableInput : public KernelState {
 public:
  /// The variable that input `i` is. FailedPrecondition when the handle names none; InvalidArgument
  /// when its dtype is not `dtype` (kInvalid: any).
  StatusOr<std::shared_ptr<VariableResource>> Find(const KernelContext& ctx, DType dtype,
                                                   int i = 0) const;

 private:
  ResourceCache<VariableResource> cache_;
};

/// The value of the resource variable that input 0 names; FailedPrecondition when there is none. As
/// VariableInput::Find.
StatusOr<Tensor> ReadVariable(const KernelContext& ctx, const VariableInput& input, DType dtype);

/// What reading a resource variable that has no value says.
Status UninitializedVariable(const ResourceStore& store, const ResourceHandle& handle);

}  // namespace tenon
