// SPDX-License-Identifier: Apache-2.0
#include "ops/nn/losses.h"

#include "ops/arguments.h"
#include "ops/cuda/check.cuh"
#include "ops/cuda/register.h"
#include "ops/nn/softmax_rows.cuh"

namespace tenon {
namespace cuda {
namespace {

/// What broadcasts to a matrix.
template <typename T>
struct MatrixView {
  MatrixView(const Tensor& t, int64_t n) : data(t.data<T>()) {
    const int64_t columns = t.rank() == 0 ? 1 : t.dim(t.rank() - 1);
    row_stride = t.rank() < 2 || t.dim(0) == 1 ? 0 : columns;
    stride = columns == n ? 1 : 0;
  }
  __device__ ComputeType<T> At(int64_t row, int64_t column) const {
    return Widen(data[row * row_stride + column * stride]);
  }

  const T* data;
  int64_t row_stride, stride;
};

/// loss = sum(labels * (log(sum(exp(x))) - x)), backprop = softmax(x) - labels, with x relative to
/// its maximum.
template <typename T>
struct CrossEntropyRow {
  MatrixView<T> logits, labels;
  int64_t n;
  T *loss, *backprop;

  template <int kThreads>
  __device__ void operator()(int64_t r) const {
    using C = ComputeType<T>;
    const auto read = [this, r](int64_t i) { return logits.At(r, i); };
    const C max = VectorMax<kThreads>(read, n);
    const C sum = RowExpSum<kThreads>(read, n, max);
    const C log_sum = std::log(sum), scale = C(1) / sum;
    double part = 0;
    for (int64_t i = threadIdx.x % kThreads; i < n; i += kThreads) {
      const C v = read(i) - max, label = labels.At(r, i);
      // A label of 0 adds nothing, also where the logit is -inf.
      if (label != C(0)) part += label * (log_sum - v);
      backprop[r * n + i] = Narrow<T>(std::exp(v) * scale - label);
    }
    const double total = MergeAll<kThreads>(part, MergeSum());
    if (threadIdx.x % kThreads == 0) loss[r] = Narrow<T>(total);
  }
};

Status SoftmaxCrossEntropyKernel(KernelContext& ctx) {
  const Tensor &logits = ctx.input(0), &labels = ctx.input(1);
  TENON_ASSIGN_OR_RETURN(const Shape shape, CrossEntropySizes(logits.shape(), labels.shape()));
  const int64_t rows = shape.dim(0), n = shape.dim(1);
  TENON_ASSIGN_OR_RETURN(Tensor * loss, ctx.AllocateOutput(0, Shape{rows}));
  TENON_ASSIGN_OR_RETURN(Tensor * backprop, ctx.AllocateOutput(1, shape));
  if (rows == 0) return OkStatus();
  if (n == 0) {
    return QueueStatus(cudaMemsetAsync(loss->raw_data(), 0, loss->num_bytes(), StreamOf(ctx)));
  }
  return DispatchStatus(logits.dtype(), FloatTypes(), [&]<typename T>(T) {
    return ForEachRow(ctx, rows, n,
                      CrossEntropyRow<T>{MatrixView<T>(logits, n), MatrixView<T>(labels, n), n,
                                         loss->data<T>(), backprop->data<T>()});
  });
}

template <typename T>
struct SparseCrossEntropyRow {
  const T* logits;
  IndexReader labels;
  int64_t n;
  T *loss, *backprop;
  RunCheck check;

  template <int kThreads>
  __device__ void operator()(int64_t r) const {
    using C = ComputeType<T>;
    const T* in = logits + r * n;
    const auto read = [in](int64_t i) { return Widen(in[i]); };
    const C max = VectorMax<kThreads>(read, n);
    const C sum = RowExpSum<kThreads>(read, n, max);
    const C scale = C(1) / sum;
    const int64_t label = labels[r];
    const bool valid = label >= 0 && label < n;
    if (threadIdx.x % kThreads == 0) {
      if (!valid) NoteIndex(check, r, label);
      loss[r] = Narrow<T>(valid ? std::log(sum) - (read(label) - max) : C(0));
    }
    for (int64_t i = threadIdx.x % kThreads; i < n; i += kThreads) {
      backprop[r * n + i] = Narrow<T>(std::exp(read(i) - max) * scale - C(i == label));
    }
  }
};

Status SparseCrossEntropyKernel(KernelContext& ctx, const NodeIdentity& node) {
  const Tensor &logits = ctx.input(0), &labels = ctx.input(1);
  TENON_RETURN_IF_ERROR(CheckLabelledLogits(logits, labels));
  const int64_t rows = logits.dim(0), classes = logits.dim(1);
  TENON_ASSIGN_OR_RETURN(Tensor * loss, ctx.AllocateOutput(0, labels.shape()));
  TENON_ASSIGN_OR_RETURN(Tensor * backprop, ctx.AllocateOutput(1, logits.shape()));
  if (rows == 0) return OkStatus();
  RunCheck check = AddCheck(ctx, node, [classes](uint64_t word) {
    return LabelOutOfRange(NotedIndex(word).value, classes, "");
  });
  return DispatchStatus(logits.dtype(), FloatTypes(), [&]<typename T>(T) {
    return ForEachRow(ctx, rows, classes,
                      SparseCrossEntropyRow<T>{logits.data<T>(), IndexReader(labels), classes,
                                               loss->data<T>(), backprop->data<T>(), check});
  });
}

/// Classes that tie with the target do not push it out; a NaN or an infinity settles it.
struct InTopKRow {
  const float* predictions;
  IndexReader targets;
  int64_t n, k;
  bool* out;

  template <int kThreads>
  __device__ void operator()(int64_t r) const {
    const float* row = predictions + r * n;
    const int64_t target = targets[r];
    const bool valid = target >= 0 && target < n;
    const float wanted = valid ? row[target] : 0.0f;
    // What is not finite counts as n + k larger ones: too many.
    int64_t larger = 0;
    for (int64_t i = threadIdx.x % kThreads; i < n; i += kThreads) {
      larger += !std::isfinite(row[i]) ? n + (k > 0 ? k : 0) : row[i] > wanted ? 1 : 0;
    }
    larger = MergeAll<kThreads>(larger, MergeSum());
    if (threadIdx.x % kThreads == 0) out[r] = valid && larger < k;
  }
};

Status InTopKKernel(KernelContext& ctx, int64_t k) {
  const Tensor &predictions = ctx.input(0), &targets = ctx.input(1);
  TENON_RETURN_IF_ERROR(CheckRows(predictions, "predictions", targets, "targets"));
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, targets.shape()));
  const int64_t n = predictions.dim(1);
  // More than n are no more than n.
  const int64_t most = std::min(k, n + 1);
  return ForEachRow(
      ctx, predictions.dim(0), n,
      InTopKRow{predictions.data<float>(), IndexReader(targets), n, most, y->data<bool>()});
}

Status InTopKV2Kernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const int64_t k, ReadInteger(ctx.input(2), "k"));
  return InTopKKernel(ctx, k);
}

}  // namespace
}  // namespace cuda

void RegisterCudaLosses(OpRegistry& ops) {
  const KernelOptions floats = {.types = {{"T", DTypesOf(FloatTypes())}}};
  cuda::AddKernel(ops, "SoftmaxCrossEntropyWithLogits", cuda::SoftmaxCrossEntropyKernel, floats);
  cuda::AddKernel(ops, "SparseSoftmaxCrossEntropyWithLogits", cuda::SparseCrossEntropyKernel,
                  floats);
  cuda::AddKernel(ops, "InTopK", cuda::InTopKKernel, {.attrs = {"k"}});
  cuda::AddKernel(ops, "InTopKV2", cuda::InTopKV2Kernel, {});
}

}  // namespace tenon
