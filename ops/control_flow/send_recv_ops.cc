// SPDX-License-Identifier: Apache-2.0

#include "core/op_registry.h"
namespace tenon {
namespace {

/// The rendezvous key of a node's attributes.
class EdgeKey : public KernelState {
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

Status SendKernel(KernelContext& ctx, const EdgeKey& key) {
  if (ctx.step().rendezvous == nullptr) return Internal("the step has no rendezvous");
  std::string storage;
  const bool dead = ctx.is_input_dead;
  return ctx.step().rendezvous->Send(key.Text(ctx, &storage), dead ? Tensor() : ctx.TakeInput(0),
                                     dead);
}

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
            return done(
                Internal("received a tensor of ", value.dtype(), ", wanted ", ctx.output_type(0)));
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

constexpr char kNeedsAnEnd[] = "needs its other end; send_recv_ops_test covers it";
constexpr char kNeedsAStep[] = "runs only inside a step; the session tests cover it";

}  // namespace

void RegisterSendRecvOps(OpRegistry& ops) {
  // The ends of a step graph or function body. The executor moves their values itself.
  ops.Get("_Arg").Shape(UnknownShape).NoExample(kNeedsAStep);
  ops.Get("_Retval").Shape(NoOutputShape).NoExample(kNeedsAStep);
  for (const char* op : {"_Send", "_HostSend"}) {
    ops.Add(op, NoOutputShape, SendKernel, {.cheap = true, .memory = kAnyMemory}).NoExample(kNeedsAnEnd);
  }
  for (const char* op : {"_Recv", "_HostRecv"}) {
    ops.Add<RecvKernel>(op, UnknownShape, {.memory = kAnyMemory}).NoExample(kNeedsAnEnd);
  }
}

}  // namespace tenon
