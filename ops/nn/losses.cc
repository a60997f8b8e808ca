// SPDX-License-Identifier: Apache-2.0
#include "ops/nn/losses.h"
#include "core/base/parallel.h"
#include "core/memory/counted_memory.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/broadcast.h"
#include "ops/broadcast_gradient.h"
#include "ops/composition.h"
#include "ops/nn/nn_ops.h"
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
  const C max = VectorMax(x, n);
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

Status SoftmaxCrossEntropyKernel(KernelContext& ctx, const Tensor& logits, const Tensor& labels) {
  TENON_ASSIGN_OR_RETURN(const Shape shape, CrossEntropySizes(logits.shape(), labels.shape()));
  const int64_t rows = shape.dim(0), n = shape.dim(1);
  TENON_ASSIGN_OR_RETURN(Tensor * loss, ctx.AllocateOutput(0, Shape{rows}));
  TENON_ASSIGN_OR_RETURN(Tensor * backprop, ctx.AllocateOutput(1, shape));
  return DispatchStatus(logits.dtype(), FloatTypes(), [&]<typename T>(T) {
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
}

template <typename T>
void SparseRows(const Tensor& logits, const IndexVector& labels, Tensor* loss, Tensor* backprop) {
  using C = ComputeType<T>;
  const int64_t rows = logits.dim(0), n = logits.dim(1);
  ParallelFor(rows, kLossNs * static_cast<double>(n) + 30, [&](int64_t begin, int64_t end) {
    CountedVector<C> buffer(2 * n);
    C *x = buffer.data(), *e = x + n;
    for (int64_t r = begin; r < end; ++r) {
      const int64_t label = labels[r];
      ReadRow<T>(logits, r, x, n);
      const C max = VectorMax(x, n), sum = RowExp(x, max, e, n), scale = 1 / sum;
      loss->data<T>()[r] = static_cast<T>(std::log(sum) - (x[label] - max));
      T* out = backprop->data<T>() + r * n;
      for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(e[i] * scale - C(i == label));
    }
  });
}

Status SparseCrossEntropyKernel(KernelContext& ctx, const Tensor& logits, const Tensor& labels) {
  TENON_RETURN_IF_ERROR(CheckLabelledLogits(logits, labels));
  const int64_t classes = logits.dim(1);
  TENON_ASSIGN_OR_RETURN(const IndexVector values, ReadIndices(labels, "labels"));
  for (const int64_t v : values) {
    if (v >= 0 && v < classes) continue;
    return LabelOutOfRange(v, classes, StrCat("  Label values: ", Join(values, " ")));
  }
  TENON_ASSIGN_OR_RETURN(Tensor * loss, ctx.AllocateOutput(0, labels.shape()));
  TENON_ASSIGN_OR_RETURN(Tensor * backprop, ctx.AllocateOutput(1, logits.shape()));
  return DispatchStatus(logits.dtype(), FloatTypes(),
                        [&]<typename T>(T) { SparseRows<T>(logits, values, loss, backprop); });
}

Status CrossEntropyShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(PartialShape both, BroadcastShapes(c.input(0), c.input(1)));
  TENON_ASSIGN_OR_RETURN(both, both.MergeWith(PartialShape::OfRank(2)));
  c.set_output(1, both);
  return c.Return(both.Part(0, 1));
}

/// The shape of input 1, a vector with an element for each row of input 0.
StatusOr<PartialShape> PerRow(const ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape rows, c.WithRank(0, 2));
  TENON_ASSIGN_OR_RETURN(const PartialShape vector, c.WithRank(1, 1));
  return vector.MergeWith(rows.Part(0, 1));
}

Status SparseCrossEntropyShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape labels, PerRow(c));
  c.set_output(1, PartialShape{labels.dim(0), c.input(0).dim(1)});
  return c.Return(labels);
}

Output Column(Output x) { return ExpandDims(x, -1); }

/// By the logits: dloss * backprop, and the derivative of softmax for the second output. `logits`
/// has as many classes as backprop.
Output GradByLogits(const GradContext& g, Output logits) {
  Output sum;
  if (g.dy(0).exists()) sum = Column(g.dy(0)) * g.out(1);
  if (g.dy(1).exists()) {
    const Output softmax = Softmax(logits);
    const Output inner = Sum(g.dy(1) * softmax, {-1}, {.keep_dims = true});
    const Output second = (g.dy(1) - inner) * softmax;
    sum = sum.exists() ? sum + second : second;
  }
  return sum;
}

/// The logits with as many classes as the labels: one for all of them is repeated. Rows may still
/// be repeated where the result meets others.
Output LogitsOfAllClasses(const GradContext& g) {
  const Output logits = g.in(0);
  const PartialShape& shape = logits.shape();
  const int64_t classes = shape.rank() > 0 ? shape.dim(shape.rank() - 1) : 1;
  if (classes != 1 && classes != PartialShape::kUnknownDim) return logits;
  return BroadcastTo(logits, ShapeVector(g.out(1)));
}

void SoftmaxCrossEntropyGrad(GradContext& g) {
  const Output logits = LogitsOfAllClasses(g);
  g.dx(0) = GradByLogits(g, logits);
  if (g.dy(0).exists()) g.dx(1) = Column(g.dy(0)) * -LogSoftmax(logits);
  SumToOperands(g.in(0), g.in(1), &g.dx(0), &g.dx(1));
}

// --- InTopK ---

Status InTopKKernel(KernelContext& ctx, int64_t k) {
  const Tensor &predictions = ctx.input(0), &targets = ctx.input(1);
  TENON_RETURN_IF_ERROR(CheckRows(predictions, "predictions", targets, "targets"));
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

Status InTopKV2Kernel(KernelContext& ctx, const Tensor&, const Tensor&, Integer k) {
  return InTopKKernel(ctx, k);
}

Status InTopKShape(ShapeContext& c) { return c.Return(PerRow(c)); }

}  // namespace

StatusOr<Shape> CrossEntropySizes(const Shape& logits, const Shape& labels) {
  TENON_ASSIGN_OR_RETURN(BroadcastPlan plan, PlanBroadcast({&logits, &labels}));
  if (plan.shape.rank() == 2) return std::move(plan.shape);
  return InvalidArgument(
      "logits and labels must be either 2-dimensional, or broadcasted to be 2-dimensional: rank "
      "2, but is rank ",
      plan.shape.rank(), " of ", logits, " and ", labels);
}

Status CheckRows(const Tensor& matrix, std::string_view what, const Tensor& vector,
                 std::string_view vector_what) {
  if (matrix.rank() != 2) {
    return InvalidArgument(what, " must be 2-D, but got shape ", matrix.shape());
  }
  if (vector.rank() != 1) {
    return InvalidArgument(vector_what, " must be 1-D, but got shape ", vector.shape());
  }
  if (vector.dim(0) == matrix.dim(0)) return OkStatus();
  return InvalidArgument(what, " and ", vector_what, " must have the same first dimension, got ",
                         what, " shape ", matrix.shape(), " and ", vector_what, " shape ",
                         vector.shape());
}

Status CheckLabelledLogits(const Tensor& logits, const Tensor& labels) {
  TENON_RETURN_IF_ERROR(CheckRows(logits, "logits", labels, "labels"));
  if (logits.dim(1) > 0) return OkStatus();
  return InvalidArgument("logits must have a class, found shape ", logits.shape());
}

Status LabelOutOfRange(int64_t label, int64_t classes, std::string_view others) {
  return InvalidArgument("Received a label value of ", label,
                         " which is outside the valid range of [0, ", classes, ").", others);
}

void RegisterLosses(OpRegistry& ops) {
  const Tensor label = Tensor::Of<double>({1, 3}, {0.2, 0.3, 0.5});
  ops.Add("SoftmaxCrossEntropyWithLogits", CrossEntropyShape, SoftmaxCrossEntropyKernel)
      .Grad(SoftmaxCrossEntropyGrad)
      .Example({Shape{2, 3}, Tensor::Of<double>({2, 3}, {0.2, 0.3, 0.5, 0, 1, 0})})
      .Example({Shape{2, 3}, label})
      .Example({Shape{2, 1}, label})
      .Example({Shape{}, label})
      .Example({Shape{2, 3}, Tensor::Of<float>({2, 3}, {0.2f, 0.3f, 0.5f, 0, 1, 0})});
  ops.Add("SparseSoftmaxCrossEntropyWithLogits", SparseCrossEntropyShape, SparseCrossEntropyKernel)
      .Grad([](GradContext& g) { g.dx(0) = GradByLogits(g, g.in(0)); })
      .Example({Shape{2, 3}, Tensor::Vector<int64_t>({2, 0})})
      .Example({Shape{2, 3}, Tensor::Vector<int32_t>({1, 1})});
  const Tensor targets = Tensor::Vector<int32_t>({2, 0});
  ops.Add("InTopK", InTopKShape, InTopKKernel, {.attrs = {"k"}})
      .Example({Shape{2, 3}, targets}, {{"k", 1}});
  ops.Add("InTopKV2", InTopKShape, InTopKV2Kernel)
      .Example({Shape{2, 3}, targets, Tensor::Scalar<int32_t>(1)});
}

}  // namespace tenon
