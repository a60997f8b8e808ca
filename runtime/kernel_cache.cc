// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel_cache.h"

#include "core/exceptions.h"
#include "core/flow_kind.h"
#include "runtime/node_identity.h"

namespace tenon {
namespace {

using Functions = std::shared_ptr<FunctionRuntime>;

StatusOr<std::shared_ptr<const Kernel>> Make(const Node& node, Device& device,
                                             const Functions& functions) {
  KernelConstruction construction(node.name(), node.op(), node.attrs(), node.input_types(),
                                  node.output_types(), device, functions);
  std::shared_ptr<const Kernel> kernel;
  const Status made = CatchExceptions([&]() -> Status {
    TENON_ASSIGN_OR_RETURN(kernel, node.registration().MakeKernel(construction));
    return OkStatus();
  });
  if (!made.ok()) return AnnotateWithNode(made, node.name(), node.op(), device.name());
  return kernel;
}

}  // namespace

StatusOr<std::shared_ptr<const Kernel>> KernelCache::Get(const Node& node, Device& device,
                                                         const Functions& functions) {
  // A transfer's key belongs to the signature, not to the session.
  if (!node.is_stateful() || FlowKindOf(node) == FlowKind::kTransfer)
    return Make(node, device, functions);
  const std::string key = StrCat(node.name(), "\n", device.name(), "\n", NodeDigest(node));
  MutexLock lock(mu_);
  if (const auto found = stateful_.find(key); found != stateful_.end()) {
    for (const Entry& e : found->second) {
      if (SameAttrs(e.attrs, node.attrs())) return e.kernel;
    }
  }
  if (num_stateful_ >= max_stateful_) {
    return ResourceExhausted("the session has ", num_stateful_,
                             " nodes with a state, as many as it may; no place for '", node.name(),
                             "'");
  }
  TENON_ASSIGN_OR_RETURN(std::shared_ptr<const Kernel> kernel, Make(node, device, functions));
  ++num_stateful_;
  stateful_[key].push_back({node.attrs(), kernel});
  return kernel;
}

}  // namespace tenon
