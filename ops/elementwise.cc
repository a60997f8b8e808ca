// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise.h"

#include <array>
#include <cstring>

#include "core/base/parallel.h"
#include "ops/arguments.h"
#include "ops/broadcast.h"
#include "ops/broadcast_gradient.h"
#include "ops/composition.h"
#include "ops/elements.h"

namespace tenon {
namespace {

/// What unary and binary kernels keep. Their dtype is that of their first input.
template <typename Info>
class ElementwiseKernel : public Kernel {
 public:
  ElementwiseKernel(KernelConstruction& c, const Info& info)
      : Kernel(c),
        loop_(info.loops[static_cast<int>(BaseType(c.input_types()[0]))]),
        cost_ns_(CostOf(info, BaseType(c.input_types()[0]))),
        in_size_(StrideOf(BaseType(c.input_types()[0]))),
        out_size_(StrideOf(BaseType(c.output_types()[0]))) {}

 protected:
  /// 16-bit floats are computed in float, there and back.
  static double CostOf(const Info& info, DType dtype) {
    const double cost = info.cost_ns[static_cast<int>(dtype)];
    return dtype == DType::kHalf || dtype == DType::kBFloat16 ? std::max(cost, 0.4) : cost;
  }

  const typename decltype(Info::loops)::value_type loop_;
  const double cost_ns_;
  const int64_t in_size_, out_size_;
};

class UnaryKernel final : public ElementwiseKernel<UnaryInfo> {
 public:
  using ElementwiseKernel::ElementwiseKernel;

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
};

/// Rows of fewer elements are computed several at a time.
constexpr int64_t kNarrow = 16;

/// Whether the two innermost dimensions are many short rows.
bool IsNarrow(const BroadcastPlan& plan) {
  constexpr int64_t kManyRows = 8;
  const size_t rank = plan.dims.size();
  return rank >= 2 && plan.inner().size < kNarrow && plan.dims[rank - 2].size >= kManyRows;
}

/// An operand in the two innermost dimensions of a plan, as whole rows of elements that lie
/// together: as it is, or its row, or its column, repeated in other memory.
class NarrowOperand {
 public:
  /// Elements of the rows that are made at a time, at most.
  static constexpr int64_t kElements = 256;
  static constexpr int64_t kMostBytes = 16;  // of an element
  struct Room {
    alignas(64) char bytes[kElements * kMostBytes];
    int64_t rows = 0;  // which are there already, of an operand with one row
  };

  /// The part of it at place `plane` of the outer dimensions.
  NarrowOperand(const char* at, const BroadcastPlan& plan, int operand, int64_t element,
                int64_t plane)
      : at_(at), element_(element) {
    const auto* dim = &plan.dims.back();
    width_ = dim->size;
    column_ = dim->strides[operand] * element;
    row_ = (--dim)->strides[operand] * element;
    while (dim != plan.dims.data()) {
      --dim;
      at_ += plane % dim->size * dim->strides[operand] * element;
      plane /= dim->size;
    }
  }

  /// The rows from the first on, `count` of them, in `room` unless they are somewhere.
  const char* Rows(int64_t first, int64_t count, Room* room) const {
    const char* const from = at_ + first * row_;
    if (column_ != 0 && row_ != 0) return from;
    if (row_ == 0 && room->rows >= count) return room->bytes;
    room->rows = count;
    switch (element_) {
      case 1:
        return Repeat<uint8_t>(from, count, room->bytes);
      case 2:
        return Repeat<uint16_t>(from, count, room->bytes);
      case 4:
        return Repeat<uint32_t>(from, count, room->bytes);
      case 8:
        return Repeat<uint64_t>(from, count, room->bytes);
      default:
        return Repeat<std::array<uint64_t, 2>>(from, count, room->bytes);
    }
  }

 private:
  template <typename T>
  const char* Repeat(const char* from, int64_t count, char* to) const {
    for (int64_t r = 0; r < count; ++r, from += row_) {
      for (int64_t j = 0; j < width_; ++j, to += sizeof(T)) {
        std::memcpy(to, from + j * column_, sizeof(T));
      }
    }
    return to - count * width_ * static_cast<int64_t>(sizeof(T));
  }

  const char* at_;
  const int64_t element_;
  int64_t width_, row_, column_;
};

class BinaryKernel final : public ElementwiseKernel<BinaryInfo> {
 public:
  BinaryKernel(KernelConstruction& c, const BinaryInfo& info)
      : ElementwiseKernel(c, info),
        error_(info.error),
        same_shape_(info.same_shape),
        // A false result for shapes that do not fit is what Equal gives, a true one NotEqual.
        incompatible_is_result_(!c.attrs().GetOr("incompatible_shape_error", true)),
        incompatible_result_(c.op() == "NotEqual") {}

  Status Compute(KernelContext& ctx) const override {
    const Tensor &x = ctx.input(0), &y = ctx.input(1);
    const bool equal = x.shape() == y.shape();
    if (same_shape_ && !equal) return CheckSameShape(ctx);
    // The common cases need no plan: one shape, or a scalar on one side.
    if (equal || y.rank() == 0) return RunLine(ctx, x.shape(), 1, equal ? 1 : 0);
    if (x.rank() == 0) return RunLine(ctx, y.shape(), 0, 1);
    const StatusOr<BroadcastPlan> plan = PlanBroadcast({&x.shape(), &y.shape()});
    if (plan.ok()) return Run(ctx, plan->shape, *plan);
    return incompatible_is_result_ ? ctx.Return(Tensor::Scalar(incompatible_result_))
                                   : plan.status();
  }

 private:
  /// Operands that are read one element after the other, or of which the only one is repeated.
  Status RunLine(KernelContext& ctx, const Shape& shape, int64_t a_step, int64_t b_step) const {
    const char* a = static_cast<const char*>(ctx.input(0).raw_data());
    const char* b = static_cast<const char*>(ctx.input(1).raw_data());
    TENON_ASSIGN_OR_RETURN(Tensor * z, Allocate(ctx, shape));
    char* out = static_cast<char*>(z->raw_data());
    std::atomic<bool> ok{true};
    ParallelFor(z->num_elements(), cost_ns_, [&](int64_t begin, int64_t end) {
      if (!loop_(a + begin * a_step * in_size_, a_step, b + begin * b_step * in_size_, b_step,
                 out + begin * out_size_, end - begin)) {
        ok.store(false, std::memory_order_relaxed);
      }
    });
    return ok ? OkStatus() : InvalidArgument(error_);
  }

  Status Run(KernelContext& ctx, const Shape& shape, const BroadcastPlan& plan) const {
    const char* a = static_cast<const char*>(ctx.input(0).raw_data());
    const char* b = static_cast<const char*>(ctx.input(1).raw_data());
    TENON_ASSIGN_OR_RETURN(Tensor * z, Allocate(ctx, shape));
    char* out = static_cast<char*>(z->raw_data());
    const BroadcastPlan::Dim& inner = plan.inner();
    std::atomic<bool> ok{true};
    if (IsNarrow(plan) && IsPlain(ctx.input(0).dtype())) {
      const int64_t rows = plan.dims[plan.dims.size() - 2].size;
      ParallelFor(z->num_elements() / inner.size, cost_ns_ * static_cast<double>(inner.size),
                  [&](int64_t begin, int64_t end) {
                    while (begin < end) {
                      const int64_t plane = begin / rows, row = begin % rows;
                      const int64_t last = std::min(rows, row + end - begin);
                      const NarrowOperand x(a, plan, 0, in_size_, plane);
                      const NarrowOperand y(b, plan, 1, in_size_, plane);
                      char* const to = out + plane * rows * inner.size * out_size_;
                      if (!RunNarrow(x, y, to, inner.size, row, last)) ok = false;
                      begin += last - row;
                    }
                  });
      return ok ? OkStatus() : InvalidArgument(error_);
    }
    ForEachRun(plan, cost_ns_, [&](const int64_t* offsets, int64_t begin, int64_t n) {
      if (!loop_(a + offsets[0] * in_size_, inner.strides[0], b + offsets[1] * in_size_,
                 inner.strides[1], out + begin * out_size_, n)) {
        ok = false;
      }
    });
    return ok ? OkStatus() : InvalidArgument(error_);
  }

  /// Rows [begin, end) of `width` elements, several at a time as one long one.
  bool RunNarrow(const NarrowOperand& x, const NarrowOperand& y, char* out, int64_t width,
                 int64_t begin, int64_t end) const {
    NarrowOperand::Room x_room, y_room;
    const int64_t together = NarrowOperand::kElements / width;
    bool ok = true;
    for (; begin < end; begin += together) {
      const int64_t rows = std::min(together, end - begin);
      ok &= loop_(x.Rows(begin, rows, &x_room), 1, y.Rows(begin, rows, &y_room), 1,
                  out + begin * width * out_size_, rows * width);
    }
    return ok;
  }

  /// The result takes the memory of an operand of its size: no element of such an operand is read
  /// after it was written.
  static StatusOr<Tensor*> Allocate(KernelContext& ctx, const Shape& shape) {
    const Tensor& x = ctx.input(0);
    const bool first = x.num_elements() == shape.num_elements() && x.HasOneReference();
    return ctx.ForwardOrAllocate(first ? 0 : 1, 0, shape);
  }

  const std::string_view error_;
  const bool same_shape_;
  const bool incompatible_is_result_, incompatible_result_;
};

/// What unary and binary ops have in common.
template <typename K>
OpBuilder Register(OpRegistry& ops, const auto& info) {
  OpBuilder op = ops.Get(info.name);
  op.InDomain(info.domain.low, info.domain.high);
  const auto add = [&](const KernelOptions& options) {
    op.AddKernel(kCpu, options,
                 [info](KernelConstruction& c) { return std::make_unique<K>(c, info); });
  };
  if (op.schema().FindAttr("Tout") != nullptr) {
    for (size_t i = 0; i < info.types.size(); ++i) {
      add({.types = {{"T", {info.types[i]}}, {"Tout", {info.results[i]}}}});
    }
  } else if (op.schema().FindAttr("T") != nullptr) {
    add({.types = {{"T", info.types}}});
  } else {
    add({});
  }
  return op;
}

/// The shape function of the comparisons that may give a scalar when the shapes do not fit.
Status ComparisonShape(ShapeContext& c) {
  const Status status = BroadcastShape(c);
  if (status.ok() || c.attrs().GetOr("incompatible_shape_error", true)) return status;
  return c.Return(PartialShape());
}

}  // namespace

void RegisterUnary(OpRegistry& ops, const UnaryInfo& info) {
  OpBuilder op = Register<UnaryKernel>(ops, info);
  op.Shape(UnchangedShape).Example({Shape{2, 3}}).Example({Shape{}});
  if (info.grad == nullptr) return;
  op.Grad([grad = info.grad](GradContext& g) { g.dx(0) = grad(g.in(0), g.out(0), g.dy(0)); });
}

void RegisterBinary(OpRegistry& ops, const BinaryInfo& info) {
  OpBuilder op = Register<BinaryKernel>(ops, info);
  op.Example({Shape{2, 3}, Shape{2, 3}});
  if (info.same_shape) {
    op.Shape(MergedShape);
  } else {
    const bool may_differ = op.schema().FindAttr("incompatible_shape_error") != nullptr;
    op.Shape(may_differ ? ComparisonShape : BroadcastShape);
    op.Example({Shape{2, 3}, Shape{3}})
        .Example({Shape{}, Shape{3}})
        .Example({Shape{2, 1, 3}, Shape{4, 1}});
  }
  if (info.grad == nullptr) return;
  op.Grad([grad = info.grad, same_shape = info.same_shape](GradContext& g) {
    std::tie(g.dx(0), g.dx(1)) = grad(g.in(0), g.in(1), g.out(0), g.dy(0));
    if (!same_shape) SumToOperands(g.in(0), g.in(1), &g.dx(0), &g.dx(1));
  });
}

}  // namespace tenon
