// SPDX-License-Identifier: Apache-2.0
#include "ops/register.h"

namespace tenon {
namespace {

/// The rendezvous key of a node's attributes.
class EdgeKey {
 public:
  explicit EdgeKey(KernelConstruction& c) {
    key_.src_device = c.Attr<std::string>("send_device");
    key_.src_incarnation = static_cast<uint64_t>(c.Attr<int64_t>("send_device_incarnation"));
    key_.dst_device = c.Attr<std::string>("recv_device");
    key_.tensor_name = c.Attr<std::string>("tensor_name");
    outside_loops_ = key_.ToString();
  }

  /// The text of the key for this run, in `*storage` when it is another than most runs have.
  std::string_view Text(const KernelContext& ctx, std::string* storage) const {
    if (ctx.frame == 0 && ctx.iteration == 0) return outside_loops_;
    RendezvousKey key = key_;
    key.frame = ctx.frame;
    key.iteration = ctx.iteration;
    *storage = key.ToString();
    return *storage;
  }

 private:
  RendezvousKey key_;
  std::string outside_loops_;
};

class SendKernel final : public Kernel {
 public:
  explicit SendKernel(KernelConstruction& c) : Kernel(c), key_(c) {}
  Status Compute(KernelContext& ctx) const override {
    if (ctx.step().rendezvous == nullptr) return Internal("the step has no rendezvous");
    std::string storage;
    const bool dead = ctx.is_input_dead;
    return ctx.step().rendezvous->Send(key_.Text(ctx, &storage), dead ? Tensor() : ctx.TakeInput(0),
                                       dead);
  }
  bool is_expensive() const override { return false; }

 private:
  EdgeKey key_;
};

class RecvKernel final : public AsyncKernel {
 public:
  explicit RecvKernel(KernelConstruction& c) : AsyncKernel(c), key_(c) {}
  void ComputeAsync(KernelContext& ctx, Done done) const override {
    if (ctx.step().rendezvous == nullptr) return done(Internal("the step has no rendezvous"));
    std::string storage;
    ctx.step().rendezvous->RecvAsync(
        key_.Text(ctx, &storage),
        [&ctx, done = std::move(done)](const Status& status, Tensor value, bool dead) {
          if (!status.ok()) return done(status);
          if (!dead && value.dtype() != ctx.output_type(0)) {
            return done(Internal("received a tensor of ", ToString(value.dtype()), ", wanted ",
                                 ToString(ctx.output_type(0))));
          }
          ctx.is_output_dead = dead;
          if (!dead) ctx.set_output(0, std::move(value));
          done(OkStatus());
        });
  }
  bool is_expensive() const override { return false; }

 private:
  EdgeKey key_;
};

void AddEdgeAttrs(OpBuilder& op) {
  op.Attr("tensor_name: string")
      .Attr("send_device: string")
      .Attr("send_device_incarnation: int")
      .Attr("recv_device: string")
      .Attr("client_terminated: bool = false")
      .Stateful()
      .NoExample("needs its other end; send_recv_ops_test covers it");
}

void AddPair(OpRegistry& ops, std::string_view prefix, std::string_view memory, bool host) {
  {
    OpBuilder op = ops.Add(StrCat(prefix, "Send"));
    op.Doc(StrCat("Leaves a tensor in ", memory, " at the rendezvous for its other end."))
        .Input("tensor: T")
        .Attr("T: type")
        .Shape(NoOutputShape);
    KernelOptions options;
    if (host) options.host_args = {"tensor"};
    op.Kernel<SendKernel>(kCpu, options);
    AddEdgeAttrs(op);
  }
  OpBuilder op = ops.Add(StrCat(prefix, "Recv"));
  op.Doc(StrCat("Waits for a tensor in ", memory, " from its other end."))
      .Output("tensor: tensor_type")
      .Attr("tensor_type: type")
      .Shape(UnknownShape);
  KernelOptions options;
  if (host) options.host_args = {"tensor"};
  op.Kernel<RecvKernel>(kCpu, options);
  AddEdgeAttrs(op);
}

}  // namespace

void RegisterSendRecvOps(OpRegistry& ops) {
  AddPair(ops, "_", "device memory", false);
  AddPair(ops, "_Host", "host memory", true);
}

}  // namespace tenon
