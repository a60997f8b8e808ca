// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/data/dataset.h"
#include "ops/state/resource_node.h"

// Handles of iterators as text, which is fed, or given to a function of another device.

namespace tenon {

/// `handle` as text, by which its resource is found while it is in the store. InvalidArgument for
/// one that is in none.
StatusOr<std::string> HandleToText(const ResourceHandle& handle);
/// The handle that `text` is; InvalidArgument for other text and for a handle of another device.
StatusOr<ResourceHandle> HandleOfText(const KernelContext& ctx, const TString& text);

/// Output 0: the handle of a T, input 0, as text.
template <typename T>
Status HandleToTextKernel(KernelContext& ctx) {
  TENON_RETURN_IF_ERROR(ResourceInput<T>(ctx).status());
  TENON_ASSIGN_OR_RETURN(const ResourceHandle* handle, HandleInput(ctx, 0));
  TENON_ASSIGN_OR_RETURN(const std::string text, HandleToText(*handle));
  return ctx.Return(Tensor::Scalar(text));
}

/// Output 0: the handle that input 0, text, is, of a T with elements of these types and shapes.
/// Where there are none, any will do.
template <typename T>
Status HandleOfTextKernel(KernelContext& ctx, const DTypeVector& types,
                          const std::vector<PartialShape>& shapes) {
  TENON_ASSIGN_OR_RETURN(ResourceHandle handle, HandleOfText(ctx, ctx.input(0).scalar<TString>()));
  TENON_ASSIGN_OR_RETURN(const auto found,
                         ctx.resources().template Lookup<T>(handle.container, handle.name));
  if (!types.empty()) TENON_RETURN_IF_ERROR(found->CheckTypes(types, shapes));
  return ctx.Return(Tensor::Scalar(std::move(handle)));
}

}  // namespace tenon
