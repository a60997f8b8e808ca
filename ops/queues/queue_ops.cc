// SPDX-License-Identifier: Apache-2.0
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/queues/queue.h"
#include "ops/state/resource_node.h"

namespace tenon {
namespace {

/// A kernel that works on the queue of input 0; what it waits for comes with `Run`.
class QueueKernel : public AsyncKernel {
 public:
  explicit QueueKernel(KernelConstruction& c) : AsyncKernel(c) { RefuseTimeout(c); }
  bool is_expensive() const final { return false; }

  void ComputeAsync(KernelContext& ctx, Done done) const final {
    StatusOr<std::shared_ptr<Queue>> queue = ResourceInput<Queue>(ctx);
    if (!queue.ok()) return done(queue.status());
    Run(**queue, ctx, std::move(done));
  }

 protected:
  virtual void Run(Queue& queue, KernelContext& ctx, Done done) const = 0;
};

template <void (Queue::*kEnqueue)(Queue::Element, const KernelContext&, Kernel::Done)>
class EnqueueKernel final : public QueueKernel {
 public:
  using QueueKernel::QueueKernel;

 private:
  void Run(Queue& queue, KernelContext& ctx, Done done) const override {
    Queue::Element components;
    for (int i = 1; i < ctx.num_inputs(); ++i) components.push_back(ctx.TakeInput(i));
    (queue.*kEnqueue)(std::move(components), ctx, std::move(done));
  }
};

enum class Amount { kOne, kMany, kUpTo };

template <Amount kAmount>
class DequeueKernel final : public QueueKernel {
 public:
  explicit DequeueKernel(KernelConstruction& c) : QueueKernel(c), types_(c.output_types()) {}

 private:
  void Run(Queue& queue, KernelContext& ctx, Done done) const override {
    if (queue.types() != types_) {
      return done(InvalidArgument("Signature mismatch: the queue has components of ",
                                  Join(queue.types(), ", "), ", wanted ", Join(types_, ", ")));
    }
    if constexpr (kAmount == Amount::kOne) {
      queue.Dequeue(ctx, std::move(done));
    } else {
      const StatusOr<int64_t> n = ReadInteger(ctx.input(1), "n");
      if (!n.ok()) return done(n.status());
      queue.DequeueMany(*n, kAmount == Amount::kUpTo, ctx, std::move(done));
    }
  }

  const DTypeVector types_;
};

class CloseKernel final : public QueueKernel {
 public:
  explicit CloseKernel(KernelConstruction& c)
      : QueueKernel(c), cancel_pending_(c.Attr<bool>("cancel_pending_enqueues")) {}

 private:
  void Run(Queue& queue, KernelContext& ctx, Done done) const override {
    queue.Close(cancel_pending_, ctx, std::move(done));
  }

  const bool cancel_pending_;
};

Status SizeKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const auto queue, ResourceInput<Queue>(ctx));
  return ctx.Return(Tensor::Scalar(static_cast<int32_t>(queue->size())));
}

Status IsClosedKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const auto queue, ResourceInput<Queue>(ctx));
  return ctx.Return(Tensor::Scalar(queue->closed()));
}

}  // namespace

void RegisterQueueOps(OpRegistry& ops) {
  constexpr char kCoveredBy[] = "needs a queue with elements; queue_ops_test covers it";
  // The ops of TensorFlow 1 give and take references, the others resource handles.
  for (const std::string_view version : {"", "V2"}) {
    const auto get = [&](std::string_view name, ShapeFn shape) {
      return ops.Get(StrCat(name, version)).Shape(shape).NoExample(kCoveredBy);
    };
    for (const char* queue :
         {"FIFOQueue", "PaddingFIFOQueue", "RandomShuffleQueue", "PriorityQueue"}) {
      get(queue, version.empty() ? ReferenceShape : ScalarShape)
          .Kernel<ResourceNodeKernel<Queue>>(kCpu);
    }
    get("QueueEnqueue", NoOutputShape).Kernel<EnqueueKernel<&Queue::Enqueue>>(kCpu);
    get("QueueEnqueueMany", NoOutputShape).Kernel<EnqueueKernel<&Queue::EnqueueMany>>(kCpu);
    get("QueueDequeue", UnknownShape).Kernel<DequeueKernel<Amount::kOne>>(kCpu);
    get("QueueDequeueMany", UnknownShape).Kernel<DequeueKernel<Amount::kMany>>(kCpu);
    get("QueueDequeueUpTo", UnknownShape).Kernel<DequeueKernel<Amount::kUpTo>>(kCpu);
    get("QueueClose", NoOutputShape).Kernel<CloseKernel>(kCpu);
    get("QueueSize", ScalarShape).Kernel(kCpu, SizeKernel, {.cheap = true});
    get("QueueIsClosed", ScalarShape).Kernel(kCpu, IsClosedKernel, {.cheap = true});
  }
}

}  // namespace tenon
