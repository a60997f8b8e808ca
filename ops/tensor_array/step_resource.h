// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "ops/state/variables.h"

// What lives as long as a step and is passed on by handle: stacks and tensor arrays. Such a class T
// has the members kKind, kContainer and kTypeName. The first versions of their ops hand on
// container and name, in a vector of two strings.

namespace tenon {

inline StatusOr<ResourceStore*> StepResources(const KernelContext& ctx) {
  if (ctx.run().resources == nullptr) return Internal("the step has no resources");
  return ctx.run().resources;
}

/// A name for what one run of a node makes: inside an outer loop there is one an iteration, and two
/// nodes may use the same name.
inline std::string UniqueName(const std::string& attr, const std::string& node) {
  static std::atomic<int64_t> made{0};
  return StrCat(attr.empty() ? node : attr, "_", made.fetch_add(1));
}

/// The T that the handle in input 0 names.
template <typename T>
StatusOr<std::shared_ptr<T>> StepResourceInput(const KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const ResourceStore* store, StepResources(ctx));
  if (const Tensor& t = ctx.input(0); t.dtype() == DType::kString) {
    if (t.num_elements() == 2) return store->Lookup<T>(t.data<TString>()[0], t.data<TString>()[1]);
    return InvalidArgument("the handle must be container and name of a ", T::kKind,
                           ", found shape ", t.shape());
  }
  TENON_ASSIGN_OR_RETURN(const ResourceHandle* handle, HandleInput(ctx, 0));
  return store->Lookup<T>(handle->container, handle->name);
}

/// A handle of the T called `name`, which `create` gives when there is none yet.
template <typename T, typename Create>
StatusOr<Tensor> StepResourceHandle(const KernelContext& ctx, std::string name, Create create) {
  TENON_ASSIGN_OR_RETURN(ResourceStore * store, StepResources(ctx));
  TENON_RETURN_IF_ERROR(store->LookupOrCreate<T>(T::kContainer, name, create));
  if (ctx.output_type(0) == DType::kString) {
    return Tensor::Vector<std::string_view>({T::kContainer, name});
  }
  ResourceHandle handle;
  handle.device = ctx.device().name();
  handle.container = T::kContainer;
  handle.name = std::move(name);
  handle.type_name = T::kTypeName;
  return Tensor::Scalar(std::move(handle));
}

}  // namespace tenon
