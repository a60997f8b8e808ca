// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise.h"

#include "core/parallel.h"
#include "ops/broadcast.h"
#include "ops/broadcast_gradient.h"
#include "ops/composition.h"

namespace tenon {
namespace {

class UnaryCpu final : public Kernel {
 public:
  UnaryCpu(KernelConstruction& c, UnaryLoop loop, double cost_ns)
      : Kernel(c),
        loop_(loop),
        cost_ns_(cost_ns),
        in_size_(ElementSize(c.input_types()[0])),
        out_size_(ElementSize(c.output_types()[0])) {}

  Status Compute(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const char* in = static_cast<const char*>(x.raw_data());
    const int64_t n = x.num_elements();
    TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.ForwardOrAllocate(0, 0, x.shape()));
    char* out = static_cast<char*>(y->raw_data());
    ParallelFor(n, cost_ns_, [&](int64_t begin, int64_t end) {
      loop_(in + begin * in_size_, out + begin * out_size_, end - begin);
    });
    return OkStatus();
  }

  static int64_t ElementSize(DType t) {
    return BaseType(t) == DType::kString ? sizeof(TString) : SizeOf(t);
  }

 private:
  const UnaryLoop loop_;
  const double cost_ns_;
  const int64_t in_size_, out_size_;
};

class BinaryCpu final : public Kernel {
 public:
  BinaryCpu(KernelConstruction& c, BinaryLoop loop, double cost_ns, std::string_view error,
            bool same_shape)
      : Kernel(c),
        loop_(loop),
        cost_ns_(cost_ns),
        error_(error),
        same_shape_(same_shape),
        // A false result for shapes that do not fit is what Equal gives, a true one NotEqual.
        incompatible_is_result_(!c.attrs().GetOr<bool>("incompatible_shape_error", true)),
        incompatible_result_(c.op() == "NotEqual"),
        in_size_(UnaryCpu::ElementSize(c.input_types()[0])),
        out_size_(UnaryCpu::ElementSize(c.output_types()[0])) {}

  Status Compute(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const Tensor& y = ctx.input(1);
    const char* a = static_cast<const char*>(x.raw_data());
    const char* b = static_cast<const char*>(y.raw_data());
    // The common cases need no plan: one shape, or a scalar on one side.
    if (x.shape() == y.shape()) return Run(ctx, x.shape(), a, 1, b, 1);
    if (same_shape_) {
      return InvalidArgument("Inputs to operation ", name(), " of type ", op(),
                             " must have the same size and shape. Input 0: ", x.shape().ToString(),
                             " != input 1: ", y.shape().ToString());
    }
    if (y.rank() == 0) return Run(ctx, x.shape(), a, 1, b, 0);
    if (x.rank() == 0) return Run(ctx, y.shape(), a, 0, b, 1);
    const Shape* const shapes[] = {&x.shape(), &y.shape()};
    StatusOr<BroadcastPlan> plan = PlanBroadcast(shapes);
    if (!plan.ok()) {
      if (!incompatible_is_result_) return plan.status();
      TENON_ASSIGN_OR_RETURN(Tensor * z, ctx.AllocateOutput(0, Shape()));
      *z->data<bool>() = incompatible_result_;
      return OkStatus();
    }
    TENON_ASSIGN_OR_RETURN(Tensor * z, Allocate(ctx, plan->shape));
    char* out = static_cast<char*>(z->raw_data());
    const BroadcastPlan::Dim& inner = plan->inner();
    std::atomic<bool> ok{true};
    ForEachRun(*plan, cost_ns_, [&](const int64_t* offsets, int64_t begin, int64_t n) {
      if (!loop_(a + offsets[0] * in_size_, inner.strides[0], b + offsets[1] * in_size_,
                 inner.strides[1], out + begin * out_size_, n)) {
        ok.store(false, std::memory_order_relaxed);
      }
    });
    return ok ? OkStatus() : InvalidArgument(error_);
  }

 private:
  Status Run(KernelContext& ctx, const Shape& shape, const char* a, int64_t a_step, const char* b,
             int64_t b_step) const {
    const int64_t n = shape.num_elements();
    TENON_ASSIGN_OR_RETURN(Tensor * z, Allocate(ctx, shape));
    char* out = static_cast<char*>(z->raw_data());
    std::atomic<bool> ok{true};
    ParallelFor(n, cost_ns_, [&](int64_t begin, int64_t end) {
      if (!loop_(a + begin * a_step * in_size_, a_step, b + begin * b_step * in_size_, b_step,
                 out + begin * out_size_, end - begin)) {
        ok.store(false, std::memory_order_relaxed);
      }
    });
    return ok ? OkStatus() : InvalidArgument(error_);
  }

  /// The result takes the memory of an operand of its size: no element of such an operand is read
  /// after it was written.
  static StatusOr<Tensor*> Allocate(KernelContext& ctx, const Shape& shape) {
    const Tensor& x = ctx.input(0);
    const bool first = x.num_elements() == shape.num_elements() && x.HasOneReference();
    return ctx.ForwardOrAllocate(first ? 0 : 1, 0, shape);
  }

  const BinaryLoop loop_;
  const double cost_ns_;
  const std::string_view error_;
  const bool same_shape_;
  const bool incompatible_is_result_;
  const bool incompatible_result_;
  const int64_t in_size_, out_size_;
};

/// The kernel's dtype is that of its first input.
DType KernelType(const KernelConstruction& c) { return BaseType(c.input_types()[0]); }

KernelOptions OptionsOf(const OpSchema& op, const ElementwiseInfo& info) {
  KernelOptions options;
  if (op.FindAttr("T") != nullptr) options.types = {{"T", info.types}};
  return options;
}

void AddGradAndDomain(OpBuilder& op, const ElementwiseInfo& info) {
  op.InDomain(info.domain.low, info.domain.high);
  if (info.not_differentiable) op.NotDifferentiable();
}

Status SameShape(ShapeContext& c) { return MergedShape(c); }

/// Of the comparisons that may give a scalar when the shapes do not fit.
Status ComparisonShape(ShapeContext& c) {
  const Status status = BroadcastShape(c);
  if (status.ok() || c.attrs().GetOr<bool>("incompatible_shape_error", true)) return status;
  c.set_output(0, PartialShape());
  return OkStatus();
}

}  // namespace

void RegisterUnary(OpRegistry& ops, const UnaryInfo& info) {
  OpBuilder op = ops.Get(info.name);
  AddGradAndDomain(op, info);
  op.Shape(UnchangedShape).Example({Shape{2, 3}}).Example({Shape{}});
  op.AddKernel(kCpu, OptionsOf(op.schema(), info),
               [loops = info.loops, cost = info.cost_ns](KernelConstruction& c) {
                 return std::make_unique<UnaryCpu>(c, loops[static_cast<int>(KernelType(c))], cost);
               });
  if (info.grad != nullptr) {
    op.Grad([grad = info.grad](GradContext& g) { g.dx(0) = grad(g.in(0), g.out(0), g.dy(0)); });
  }
}

void RegisterBinary(OpRegistry& ops, const BinaryInfo& info) {
  OpBuilder op = ops.Get(info.name);
  AddGradAndDomain(op, info);
  op.Example({Shape{2, 3}, Shape{2, 3}});
  if (info.same_shape) {
    op.Shape(SameShape);
  } else {
    const bool may_differ = op.schema().FindAttr("incompatible_shape_error") != nullptr;
    op.Shape(may_differ ? ComparisonShape : BroadcastShape);
    op.Example({Shape{2, 3}, Shape{3}})
        .Example({Shape{}, Shape{3}})
        .Example({Shape{2, 1, 3}, Shape{4, 1}});
  }
  op.AddKernel(kCpu, OptionsOf(op.schema(), info), [info](KernelConstruction& c) {
    return std::make_unique<BinaryCpu>(c, info.loops[static_cast<int>(KernelType(c))], info.cost_ns,
                                       info.error, info.same_shape);
  });
  if (info.grad != nullptr) {
    op.Grad([grad = info.grad, same_shape = info.same_shape](GradContext& g) {
      grad(g.in(0), g.in(1), g.out(0), g.dy(0), &g.dx(0), &g.dx(1));
      if (!same_shape) SumToOperands(g.in(0), g.in(1), &g.dx(0), &g.dx(1));
    });
  }
}

}  // namespace tenon
