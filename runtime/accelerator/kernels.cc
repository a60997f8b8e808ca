// SPDX-License-Identifier: Apache-2.0
#include "runtime/accelerator/kernels.h"

#include "core/device/device_queue.h"
#include "core/op/transfer_edge.h"

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
    ctx.device().queue()->CopyToHost(ctx.TakeInput(0), ctx.device_run().id,
                                     [&ctx, done = std::move(done)](StatusOr<Tensor> host) {
                                       done(ctx.Return(std::move(host)));
                                     });
  }
  bool is_expensive() const override { return false; }
};

/// The copy is made where the value is, and sent when it has been made: whoever receives it need
/// not know where it comes from, and waits for nothing else on this device.
class SendToPeer final : public AsyncKernel {
 public:
  explicit SendToPeer(KernelConstruction& c) : AsyncKernel(c), edge_(c) {
    for (Device* d : c.task_devices()) {
      if (d->name() == edge_.receiver() && d->kind() == c.device().kind()) peer_ = d->queue();
    }
    if (peer_ == nullptr) {
      c.Fail(InvalidArgument(edge_.receiver(), " is no device of the same kind beside this one"));
    }
  }
  void ComputeAsync(KernelContext& ctx, Done done) const override {
    if (ctx.is_input_dead) return done(edge_.Send(ctx, Tensor()));
    ctx.device().queue()->CopyToPeer(
        ctx.TakeInput(0), *peer_, ctx.device_run().id,
        [this, &ctx, done = std::move(done)](StatusOr<Tensor> copy) {
          done(copy.ok() ? edge_.Send(ctx, *std::move(copy)) : copy.status());
        });
  }
  bool is_expensive() const override { return false; }

 private:
  TransferEdge edge_;
  DeviceQueue* peer_ = nullptr;
};

class RecvFromPeer final : public AsyncKernel {
 public:
  explicit RecvFromPeer(KernelConstruction& c) : AsyncKernel(c), edge_(c) {}
  void ComputeAsync(KernelContext& ctx, Done done) const override {
    edge_.Receive(ctx, true, std::move(done));
  }
  bool is_expensive() const override { return false; }

 private:
  TransferEdge edge_;
};

}  // namespace

void RegisterAcceleratorKernels(OpRegistry& ops, DeviceKind kind) {
  ops.Get("Const").Kernel<DeviceConst>(kind);
  ops.Get("_CopyToDevice").Kernel(kind, CopyToDevice, {.cheap = true});
  ops.Get("_CopyToHost").Kernel<CopyToHost>(kind);
  ops.Get("_SendToPeer").Kernel<SendToPeer>(kind);
  ops.Get("_RecvFromPeer").Kernel<RecvFromPeer>(kind);
}

}  // namespace tenon
