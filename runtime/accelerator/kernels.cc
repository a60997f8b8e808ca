// SPDX-License-Identifier: Apache-2.0
#include "runtime/accelerator/kernels.h"

#include "core/device_queue.h"

namespace tenon {
namespace {

/// Copied once, when the step is prepared. What only the host understands stays there.
class DeviceConst final : public Kernel {
 public:
  explicit DeviceConst(KernelConstruction& c) : Kernel(c), value_(c.Attr<Tensor>("value")) {
    if (!value_.valid() || !IsPlain(value_.dtype())) return;
    StatusOr<Tensor> copy = c.device().queue()->CopyToDevice(value_);
    if (copy.ok()) {
      value_ = *std::move(copy);
    } else {
      c.Fail(copy.status());
    }
  }
  Status Compute(KernelContext& ctx) const override { return ctx.Return(value_); }
  bool is_expensive() const override { return false; }
  const Tensor* constant() const override { return value_.valid() ? &value_ : nullptr; }

 private:
  Tensor value_;
};

Status CopyToDevice(KernelContext& ctx) {
  return ctx.Return(ctx.device().queue()->CopyToDevice(ctx.input(0)));
}

class CopyToHost final : public AsyncKernel {
 public:
  explicit CopyToHost(KernelConstruction& c) : AsyncKernel(c) {}
  void ComputeAsync(KernelContext& ctx, Done done) const override {
    ctx.device().queue()->CopyToHost(ctx.TakeInput(0), ctx.step().step_id,
                                     [&ctx, done = std::move(done)](StatusOr<Tensor> host) {
                                       done(ctx.Return(std::move(host)));
                                     });
  }
  bool is_expensive() const override { return false; }
};

}  // namespace

void RegisterAcceleratorKernels(OpRegistry& ops) {
  ops.Get("Const").Kernel<DeviceConst>(kCuda);
  ops.Get("_CopyToDevice").Kernel(kCuda, CopyToDevice, {.cheap = true});
  ops.Get("_CopyToHost").Kernel<CopyToHost>(kCuda);
}

}  // namespace tenon
