// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <vector>

#include "core/counted_memory.h"
#include "core/kernel.h"
#include "core/parallel.h"
#include "ops/arguments.h"
#include "ops/broadcast.h"
#include "ops/broadcast_gradient.h"
#include "ops/composition.h"
#include "ops/nn/nn_ops.h"
#include "ops/nn/register.h"
#include "ops/nn/softmax_rows.h"

namespace tenon {
namespace {

constexpr double kLossNs = 2;

/// Reads row `row` of what broadcasts to a matrix, as C.
template <typename T, typename C>
void ReadRow(const Tensor& t, int64_t row, C* out, int64_t n) {
  const int64_t columns = t.rank() == 0 ? 1 : t.dim(t.rank() - 1);
  const T* from = t.data<T>() + (t.rank() < 2 || t.dim(0) == 1 ? 0 : row * columns);
  if (columns == n) {
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<C>(from[i]);
  } else {
    std::fill_n(out, n, static_cast<C>(*from));
  }
}

/// loss = sum(labels * (log(sum(exp(x))) - x)), backprop = softmax(x) - labels, with x relative to
/// its maximum. `x` becomes the backprop.
template <typename C>
C CrossEntropyRow(C* x, const C* labels, C* scratch, int64_t n) {
  const C max = RowMax(x, n);
  const C sum = RowExp(x, max, scratch, n);
  const C log_sum = std::log(sum), scale = C(1) / sum;
  double loss = 0;
  for (int64_t i = 0; i < n; ++i) {
    // A label of 0 adds nothing, also where the logit is -inf.
    if (labels[i] != C(0)) loss += labels[i] * (log_sum - (x[i] - max));
  }
  TENON_SIMD
  for (int64_t i = 0; i < n; ++i) x[i] = scratch[i] * scale - labels[i];
  return static_cast<C>(loss);
}

Status SoftmaxCrossEntropyCpu(KernelContext& ctx) {
  const Tensor &logits = ctx.input(0), &labels = ctx.input(1);
  const Shape* const shapes[] = {&logits.shape(), &labels.shape()};
  const StatusOr<BroadcastPlan> plan = PlanBroadcast(shapes);
  if (!plan.ok()) {
    return InvalidArgument("logits and labels must be broadcastable: logits_size=",
                           logits.shape().ToString(), " labels_size=", labels.shape().ToString());
  }
  const Shape& shape = plan->shape;
  if (shape.rank() != 2) {
    return InvalidArgument("logits and labels must be either 2-dimensional, or broadcasted to be "
                           "2-dimensional, found ", logits.shape().ToString(), " and ",
                           labels.shape().ToString());
  }
  const int64_t rows = shape.dim(0), n = shape.dim(1);
  TENON_ASSIGN_OR_RETURN(Tensor * loss, ctx.AllocateOutput(0, Shape{rows}));
  TENON_ASSIGN_OR_RETURN(Tensor * backprop, ctx.AllocateOutput(1, shape));
  Dispatch(logits.dtype(), FloatTypes(), [&](auto zero) {
    using T = decltype(zero);
    using C = ComputeType<T>;
    T* l = loss->data<T>();
    if (n == 0) {
      std::fill_n(l, rows, T(0));
      return;
    }
    T* b = backprop->data<T>();
    ParallelFor(rows, kLossNs * static_cast<double>(n) + 30, [&](int64_t begin, int64_t end) {
      CountedVector<C> buffer(3 * n);
      C *x = buffer.data(), *y = x + n, *scratch = y + n;
      for (int64_t r = begin; r < end; ++r) {
        ReadRow<T>(logits, r, x, n);
        ReadRow<T>(labels, r, y, n);
        l[r] = static_cast<T>(CrossEntropyRow(x, y, scratch, n));
        for (int64_t i = 0; i < n; ++i) b[r * n + i] = static_cast<T>(x[i]);
      }
    });
  });
  return OkStatus();
}

template <typename T, typename Label>
void SparseRows(const Tensor& logits, const Tensor& labels, Tensor* loss, Tensor* backprop) {
  using C = ComputeType<T>;
  const int64_t rows = logits.dim(0), n = logits.dim(1);
  const T* in = logits.data<T>();
  ParallelFor(rows, kLossNs * static_cast<double>(n) + 30, [&](int64_t begin, int64_t end) {
    CountedVector<C> buffer(2 * n);
    C *x = buffer.data(), *e = x + n;
    for (int64_t r = begin; r < end; ++r) {
      const int64_t label = static_cast<int64_t>(labels.data<Label>()[r]);
      for (int64_t i = 0; i < n; ++i) x[i] = static_cast<C>(in[r * n + i]);
      const C max = RowMax(x, n);
      const C sum = RowExp(x, max, e, n);
      const C scale = C(1) / sum;
      loss->data<T>()[r] = static_cast<T>(std::log(sum) - (x[label] - max));
      T* out = backprop->data<T>() + r * n;
      for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(e[i] * scale - C(i == label));
    }
  });
}

Status SparseCrossEntropyCpu(KernelContext& ctx) {
  const Tensor &logits = ctx.input(0), &labels = ctx.input(1);
  if (logits.rank() != 2) {
    return InvalidArgument("logits must be 2-D, but got shape ", logits.shape().ToString());
  }
  if (labels.rank() != 1 || labels.dim(0) != logits.dim(0)) {
    return InvalidArgument(
        "logits and labels must have the same first dimension, got logits shape ",
        logits.shape().ToString(), " and labels shape ", labels.shape().ToString());
  }
  const int64_t classes = logits.dim(1);
  if (classes == 0) return InvalidArgument("Must have at least one class, but got logits shape ",
                                           logits.shape().ToString());
  TENON_ASSIGN_OR_RETURN(const IndexVector values, ReadIndices(labels, "labels"));
  for (const int64_t v : values) {
    if (v >= 0 && v < classes) continue;
    return InvalidArgument("Received a label value of ", v,
                           " which is outside the valid range of [0, ", classes,
                           ").  Label values: ", Join(values, " "));
  }
  TENON_ASSIGN_OR_RETURN(Tensor * loss, ctx.AllocateOutput(0, labels.shape()));
  TENON_ASSIGN_OR_RETURN(Tensor * backprop, ctx.AllocateOutput(1, logits.shape()));
  Dispatch(logits.dtype(), FloatTypes(), [&](auto zero) {
    using T = decltype(zero);
    if (labels.dtype() == DType::kInt32) {
      SparseRows<T, int32_t>(logits, labels, loss, backprop);
    } else {
      SparseRows<T, int64_t>(logits, labels, loss, backprop);
    }
  });
  return OkStatus();
}

Status CrossEntropyShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(PartialShape both, BroadcastShapes(c.input(0), c.input(1)));
  TENON_ASSIGN_OR_RETURN(both, both.MergeWith(PartialShape::OfRank(2)));
  c.set_output(0, PartialShape{both.dim(0)});
  c.set_output(1, both);
  return OkStatus();
}

Status SparseCrossEntropyShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape logits, c.WithRank(0, 2));
  TENON_ASSIGN_OR_RETURN(PartialShape labels, c.WithRank(1, 1));
  TENON_ASSIGN_OR_RETURN(labels, labels.MergeWith(PartialShape{logits.dim(0)}));
  c.set_output(0, labels);
  c.set_output(1, PartialShape{labels.dim(0), logits.dim(1)});
  return OkStatus();
}

Output Column(Output x) { return ExpandDims(x, -1); }

/// By the logits: dloss * backprop, and the derivative of softmax for the second output. `logits`
/// has as many classes as backprop.
Output GradByLogits(const GradContext& g, Output logits) {
  Output sum;
  if (g.dy(0)) sum = Mul(Column(g.dy(0)), g.out(1));
  if (g.dy(1)) {
    const Output softmax = Softmax(logits);
    const Output inner = Sum(Mul(g.dy(1), softmax), {-1}, {.keep_dims = true});
    const Output second = Mul(Sub(g.dy(1), inner), softmax);
    sum = sum ? AddV2(sum, second) : second;
  }
  return sum;
}

/// The logits with as many classes as the labels: one for all of them is repeated. Rows may still
/// be repeated where the result meets others.
Output LogitsOfAllClasses(const GradContext& g) {
  const Output logits = g.in(0);
  const PartialShape& shape = logits.shape();
  const bool has_all = shape.rank() > 0 && shape.dim(shape.rank() - 1) != 1 &&
                       shape.dim(shape.rank() - 1) != PartialShape::kUnknownDim;
  if (has_all) return logits;
  return BroadcastTo(logits, ShapeVector(g.out(1)));
}

void SoftmaxCrossEntropyGrad(GradContext& g) {
  const Output logits = LogitsOfAllClasses(g);
  g.dx(0) = GradByLogits(g, logits);
  if (g.dy(0)) g.dx(1) = Mul(Column(g.dy(0)), Neg(LogSoftmax(logits)));
  SumToOperands(g.in(0), g.in(1), &g.dx(0), &g.dx(1));
}

void SparseCrossEntropyGrad(GradContext& g) { g.dx(0) = GradByLogits(g, g.in(0)); }

// --- InTopK ---

Status InTopKRows(KernelContext& ctx, int64_t k) {
  const Tensor &predictions = ctx.input(0), &targets = ctx.input(1);
  if (predictions.rank() != 2) {
    return InvalidArgument("predictions must be 2-dimensional, found ",
                           predictions.shape().ToString());
  }
  if (targets.rank() != 1 || targets.dim(0) != predictions.dim(0)) {
    return InvalidArgument("First dimension of predictions ", predictions.dim(0),
                           " must match length of targets ", targets.shape().ToString());
  }
  TENON_ASSIGN_OR_RETURN(const IndexVector wanted, ReadIndices(targets, "targets"));
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, targets.shape()));
  const int64_t n = predictions.dim(1);
  for (int64_t r = 0; r < predictions.dim(0); ++r) {
    const float* row = predictions.data<float>() + r * n;
    bool& in_top_k = y->data<bool>()[r];
    in_top_k = false;
    if (wanted[r] < 0 || wanted[r] >= n || !std::isfinite(row[wanted[r]])) continue;
    // Classes that tie with the target do not push it out; a NaN or an infinity settles it.
    int64_t larger = 0;
    bool finite = true;
    for (int64_t i = 0; i < n; ++i) {
      finite &= std::isfinite(row[i]);
      larger += row[i] > row[wanted[r]];
    }
    in_top_k = finite && larger < k;
  }
  return OkStatus();
}

class InTopKCpu final : public Kernel {
 public:
  explicit InTopKCpu(KernelConstruction& c) : Kernel(c), k_(c.Attr<int64_t>("k")) {}
  Status Compute(KernelContext& ctx) const override { return InTopKRows(ctx, k_); }

 private:
  const int64_t k_;
};

Status InTopKV2Cpu(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const int64_t k, ReadInteger(ctx.input(2), "k"));
  return InTopKRows(ctx, k);
}

Status InTopKShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape predictions, c.WithRank(0, 2));
  TENON_ASSIGN_OR_RETURN(PartialShape targets, c.WithRank(1, 1));
  TENON_ASSIGN_OR_RETURN(targets, targets.MergeWith(PartialShape{predictions.dim(0)}));
  c.set_output(0, std::move(targets));
  return OkStatus();
}

}  // namespace

void RegisterLosses(OpRegistry& ops) {
  ops.Get("SoftmaxCrossEntropyWithLogits")
      .Shape(CrossEntropyShape).Kernel(kCpu, SoftmaxCrossEntropyCpu).Grad(SoftmaxCrossEntropyGrad)
      .Example({Shape{2, 3}, Tensor::Of<double>({2, 3}, {0.2, 0.3, 0.5, 0, 1, 0})})
      .Example({Shape{2, 3}, Tensor::Of<double>({1, 3}, {0.2, 0.3, 0.5})})
      .Example({Shape{2, 1}, Tensor::Of<double>({1, 3}, {0.2, 0.3, 0.5})})
      .Example({Shape{}, Tensor::Of<double>({1, 3}, {0.2, 0.3, 0.5})})
      .Example({Shape{2, 3}, Tensor::Of<float>({2, 3}, {0.2f, 0.3f, 0.5f, 0, 1, 0})});
  ops.Get("SparseSoftmaxCrossEntropyWithLogits")
      .Shape(SparseCrossEntropyShape).Kernel(kCpu, SparseCrossEntropyCpu)
      .Grad(SparseCrossEntropyGrad)
      .Example({Shape{2, 3}, Tensor::Vector<int64_t>({2, 0})})
      .Example({Shape{2, 3}, Tensor::Vector<int32_t>({1, 1})});
  ops.Get("InTopK")
      .Shape(InTopKShape).Kernel<InTopKCpu>(kCpu)
      .Example({Shape{2, 3}, Tensor::Vector<int32_t>({2, 0})}, {{"k", 1}});
  ops.Get("InTopKV2")
      .Shape(InTopKShape).Kernel(kCpu, InTopKV2Cpu, {{}, {"k"}})
      .Example({Shape{2, 3}, Tensor::Vector<int32_t>({2, 0}), Tensor::Scalar<int32_t>(1)});
}

}  // namespace tenon
