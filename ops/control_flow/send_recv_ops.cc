// SPDX-License-Identifier: Apache-2.0
#include "core/op/op_registry.h"
#include "core/op/transfer_edge.h"

namespace tenon {
namespace {

Status SendKernel(KernelContext& ctx, const TransferEdge& edge) {
  return edge.Send(ctx, ctx.is_input_dead ? Tensor() : ctx.TakeInput(0));
}

class RecvKernel final : public AsyncKernel {
 public:
  explicit RecvKernel(KernelConstruction& c) : AsyncKernel(c), edge_(c) {}
  void ComputeAsync(KernelContext& ctx, Done done) const override {
    edge_.Receive(ctx, false, std::move(done));
  }
  bool is_expensive() const override { return false; }

 private:
  TransferEdge edge_;
};

constexpr char kNeedsAnEnd[] = "needs its other end; send_recv_ops_test covers it";
constexpr char kNeedsPeers[] = "needs two memories; simulated_device_test covers it";
constexpr char kNeedsAStep[] = "runs only inside a step; the session tests cover it";

}  // namespace

void RegisterSendRecvOps(OpRegistry& ops) {
  // The ends of a step graph or function body. The executor moves their values itself.
  ops.Get("_Arg").Shape(UnknownShape).NoExample(kNeedsAStep);
  ops.Get("_Retval").Shape(NoOutputShape).NoExample(kNeedsAStep);
  for (const char* op : {"_Send", "_HostSend"}) {
    ops.Add(op, NoOutputShape, SendKernel, {.cheap = true, .memory = kAnyMemory})
        .NoExample(kNeedsAnEnd);
  }
  for (const char* op : {"_Recv", "_HostRecv"}) {
    ops.Add<RecvKernel>(op, UnknownShape, {.memory = kAnyMemory}).NoExample(kNeedsAnEnd);
  }
  // The kernels of these ops are those of devices with memory of their own.
  ops.Get("_SendToPeer").Shape(NoOutputShape).NoExample(kNeedsPeers);
  ops.Get("_RecvFromPeer").Shape(UnknownShape).NoExample(kNeedsPeers);
}

}  // namespace tenon
