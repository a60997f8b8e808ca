// SPDX-License-Identifier: Apache-2.0
#include "runtime/execute/kernel_cache.h"

#include "core/base/exceptions.h"
#include "core/graph/graph.h"
#include "runtime/execute/node_identity.h"

namespace tenon {
namespace {

using Functions = std::shared_ptr<FunctionRuntime>;

/// A kernel of a device with memory of its own that runs on the host.
class HostKernel final : public Kernel {
 public:
  HostKernel(const KernelConstruction& c, std::unique_ptr<Kernel> kernel, Device& host)
      : Kernel(c), kernel_(std::move(kernel)), host_(host) {}

  Status Compute(KernelContext& ctx) const override {
    OnHost call(ctx, host_);
    const Status status = kernel_->Compute(call.context);
    call.GiveBack(ctx);
    return status;
  }
  bool is_async() const override { return kernel_->is_async(); }
  void ComputeAsync(KernelContext& ctx, Done done) const override {
    auto call = std::make_shared<OnHost>(ctx, host_);
    kernel_->ComputeAsync(call->context, [call, &ctx, done = std::move(done)](Status status) {
      call->GiveBack(ctx);
      done(std::move(status));
    });
  }
  bool is_expensive() const override { return kernel_->is_expensive(); }
  const Tensor* constant() const override { return kernel_->constant(); }

 private:
  struct OnHost {
    OnHost(const KernelContext& ctx, Device& host)
        : run{ctx.run(), host, ctx.device_run().id}, context(run, ctx) {}
    void GiveBack(KernelContext& ctx) const { ctx.is_output_dead = context.is_output_dead; }
    const DeviceRun run;
    KernelContext context;
  };
  const std::unique_ptr<Kernel> kernel_;
  Device& host_;
};

StatusOr<std::shared_ptr<const Kernel>> Make(const Node& node, Device& device,
                                             const Functions& functions,
                                             absl::Span<Device* const> task_devices) {
  const bool on_host = &device.host() != &device &&
                       node.registration().MemoryOn(device.kind(), node.attrs()) == kHostMemory;
  KernelConstruction construction(node.name(), node.op(), node.attrs(), node.input_types(),
                                  node.output_types(), on_host ? device.host() : device, functions,
                                  task_devices);
  std::shared_ptr<const Kernel> kernel;
  const Status made = CatchExceptions([&]() -> Status {
    TENON_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> k, node.registration().MakeKernel(construction));
    if (on_host) k = std::make_unique<HostKernel>(construction, std::move(k), device.host());
    kernel = std::move(k);
    return OkStatus();
  });
  if (!made.ok()) return AnnotateWithNode(made, node.name(), node.op(), device.name());
  return kernel;
}

}  // namespace

StatusOr<std::shared_ptr<const Kernel>> KernelCache::Get(const Node& node, Device& device,
                                                         const Functions& functions,
                                                         absl::Span<Device* const> task_devices) {
  // A transfer's key belongs to the signature, not to the session.
  if (!node.is_stateful() || node.flow() == FlowKind::kTransfer)
    return Make(node, device, functions, task_devices);
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
  TENON_ASSIGN_OR_RETURN(std::shared_ptr<const Kernel> kernel,
                         Make(node, device, functions, task_devices));
  ++num_stateful_;
  stateful_[key].push_back({node.attrs(), kernel});
  return kernel;
}

}  // namespace tenon
