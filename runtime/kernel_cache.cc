// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel_cache.h"

#include "core/exceptions.h"
#include "runtime/frames.h"

namespace tenon {
namespace {

StatusOr<std::shared_ptr<const Kernel>> Make(const Node& node, Device& device) {
  KernelConstruction construction(node.name(), node.op(), node.attrs(), node.input_types(),
                                  node.output_types(), device);
  std::shared_ptr<const Kernel> kernel;
  const Status made = CatchExceptions([&]() -> Status {
    TENON_ASSIGN_OR_RETURN(kernel, node.registration().MakeKernel(construction));
    return OkStatus();
  });
  if (!made.ok()) return AnnotateWithNode(made, node.name(), node.op(), device.name());
  return kernel;
}

}  // namespace

StatusOr<std::shared_ptr<const Kernel>> KernelCache::Get(const Node& node, Device& device) {
  // A transfer's key belongs to the signature, not to the session.
  if (!node.is_stateful() || FlowKindOf(node) == FlowKind::kTransfer) return Make(node, device);
  MutexLock lock(mu_);
  const auto found = stateful_.find(node.name());
  if (found != stateful_.end()) return found->second;
  TENON_ASSIGN_OR_RETURN(std::shared_ptr<const Kernel> kernel, Make(node, device));
  stateful_.emplace(node.name(), kernel);
  return kernel;
}

}  // namespace tenon
