// SPDX-License-Identifier: Apache-2.0
//
// Connectionist temporal classification (Graves: "Supervised sequence labelling with recurrent
// neural networks", 2012, chapter 7; the numbers of equations are his).
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/parallel.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/array/array_ops.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/maths.h"
#include "ops/sequences/log_sum.h"
#include "ops/sparse/sparse_tensor.h"

namespace tenon {
namespace {

using Labels = std::vector<int64_t>;

struct LossAttrs : KernelState {
  explicit LossAttrs(KernelConstruction& c)
      : collapse(c.Attr<bool>("preprocess_collapse_repeated")),
        merge(c.Attr<bool>("ctc_merge_repeated")),
        ignore_longer(c.Attr<bool>("ignore_longer_outputs_than_inputs")) {}
  const bool collapse, merge, ignore_longer;
};

/// The labels of one batch entry with a blank before each and at the end.
StatusOr<Labels> WithBlanks(const Labels& labels, const LossAttrs& attrs, int64_t blank,
                            int64_t time, int64_t entry) {
  if (labels.empty()) return InvalidArgument("Labels length is zero in batch ", entry);
  Labels result = {blank};
  bool ended = false;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (i > 0 && attrs.collapse && labels[i] == labels[i - 1]) continue;
    if (labels[i] >= blank) {
      ended = true;
      continue;
    }
    if (ended) {
      return InvalidArgument(
          "Saw a non-null label (index >= num_classes - 1) following a null "
          "label, batch: ",
          entry, " labels: ", Join(labels, ","));
    }
    if (labels[i] < 0) {
      return InvalidArgument("All labels must be nonnegative integers, batch: ", entry,
                             " labels: ", Join(labels, ","));
    }
    result.insert(result.end(), {labels[i], blank});
  }
  if (!attrs.ignore_longer && static_cast<int64_t>(labels.size()) > time) {
    return InvalidArgument("Not enough time for target transition sequence (required: ",
                           labels.size(), ", available: ", time, ") in batch ", entry,
                           "; ignore_longer_outputs_than_inputs gives such an entry no loss");
  }
  return result;
}

/// One batch entry: probabilities y[time][classes], and forward and backward variables
/// [time][labels].
template <typename T>
class Path {
 public:
  Path(const Labels& labels, int64_t time, int64_t classes, bool merge)
      : labels_(labels),
        size_(static_cast<int64_t>(labels.size())),
        time_(time),
        classes_(classes),
        merge_(merge),
        y_(time * classes),
        alpha_(time * size_, LogZero<T>()),
        beta_(time * size_, LogZero<T>()) {}

  /// Step t has the logits at logits + t * stride.
  void Softmax(const T* logits, int64_t stride) {
    for (int64_t t = 0; t < time_ && !Interrupted(); ++t) {
      const T *from = logits + t * stride, highest = *std::max_element(from, from + classes_);
      T sum = 0;
      for (int64_t k = 0; k < classes_; ++k) sum += y(t, k) = std::exp(from[k] - highest);
      for (int64_t k = 0; k < classes_; ++k) y(t, k) /= sum;
    }
  }

  /// log p(labels | y), by equation 7.26 at the first step.
  T LogProbability() {
    Forward();
    Backward();
    T sum = LogZero<T>();
    for (int64_t u = 0; u < size_; ++u) sum = LogSum(sum, alpha(0, u) + beta(0, u));
    return sum;
  }

  /// The gradient of -log p, by equation 7.34; of no possible path, y.
  void Gradient(T log_p, T* out, int64_t stride) const {
    std::vector<T> sums(classes_);
    for (int64_t t = 0; t < time_ && !Interrupted(); ++t) {
      std::fill(sums.begin(), sums.end(), LogZero<T>());
      for (int64_t u = 0; u < size_; ++u) {
        T& sum = sums[labels_[u]];
        sum = LogSum(sum, alpha(t, u) + beta(t, u));
      }
      for (int64_t k = 0; k < classes_; ++k) {
        const float taken =
            log_p == LogZero<T>() ? 0 : std::exp(static_cast<float>(sums[k] - log_p));
        out[t * stride + k] = y(t, k) - taken;
      }
    }
  }

 private:
  T& y(int64_t t, int64_t k) { return y_[t * classes_ + k]; }
  const T& y(int64_t t, int64_t k) const { return y_[t * classes_ + k]; }
  T& alpha(int64_t t, int64_t u) { return alpha_[t * size_ + u]; }
  const T& alpha(int64_t t, int64_t u) const { return alpha_[t * size_ + u]; }
  T& beta(int64_t t, int64_t u) { return beta_[t * size_ + u]; }
  const T& beta(int64_t t, int64_t u) const { return beta_[t * size_ + u]; }
  T LogY(int64_t t, int64_t u) const { return std::log(y(t, labels_[u])); }

  bool IsBlank(int64_t u) const { return u % 2 == 0; }
  /// Whether a path may stay at label u, and whether it may go from u - 2 to u at once.
  bool MayStay(int64_t u) const { return merge_ || IsBlank(u); }
  bool MaySkipTo(int64_t u) const {
    return !IsBlank(u) && !(merge_ && labels_[u] == labels_[u - 2]);
  }
  /// The labels that a path can be at in step t: reached by then, and with time for the rest.
  int64_t First(int64_t t) const { return std::max<int64_t>(0, size_ - 2 * (time_ - t)); }
  int64_t Last(int64_t t) const { return std::min(size_, 2 * (t + 1)); }

  void Forward() {  // equation 7.9
    for (int64_t u = 0; u < std::min<int64_t>(2, size_); ++u) alpha(0, u) = LogY(0, u);
    for (int64_t t = 1; t < time_ && !Interrupted(); ++t) {
      for (int64_t u = First(t); u < Last(t); ++u) {
        T sum = MayStay(u) ? alpha(t - 1, u) : LogZero<T>();
        if (u > 0) sum = LogSum(sum, alpha(t - 1, u - 1));
        if (u > 1 && MaySkipTo(u)) sum = LogSum(sum, alpha(t - 1, u - 2));
        alpha(t, u) = LogY(t, u) + sum;
      }
    }
  }

  void Backward() {  // equation 7.15
    for (int64_t u = std::max<int64_t>(0, size_ - 2); u < size_; ++u) beta(time_ - 1, u) = 0;
    for (int64_t t = time_ - 2; t >= 0 && !Interrupted(); --t) {
      for (int64_t u = First(t); u < Last(t); ++u) {
        T sum = LogZero<T>();
        if (MayStay(u)) sum = beta(t + 1, u) + LogY(t + 1, u);
        if (u + 1 < size_) sum = LogSum(sum, beta(t + 1, u + 1) + LogY(t + 1, u + 1));
        if (u + 2 < size_ && !IsBlank(u) && MaySkipTo(u + 2)) {
          sum = LogSum(sum, beta(t + 1, u + 2) + LogY(t + 1, u + 2));
        }
        beta(t, u) = sum;
      }
    }
  }

  const Labels& labels_;
  const int64_t size_, time_, classes_;
  const bool merge_;
  CountedVector<T> y_, alpha_, beta_;
};

/// The labels of each batch entry.
StatusOr<std::vector<Labels>> ReadLabels(const Tensor& indices, const Tensor& values,
                                         int64_t batch) {
  int64_t longest = 0;
  if (indices.rank() == 2 && indices.dim(1) == 2) {
    for (int64_t i = 0; i < indices.dim(0); ++i) {
      longest = std::max(longest, indices.data<int64_t>()[2 * i + 1]);
    }
  }
  TENON_ASSIGN_OR_RETURN(longest, AddSizes(longest, 1));
  TENON_ASSIGN_OR_RETURN(
      const SparseTensor sparse,
      SparseTensor::Of(indices, values, Tensor::Vector<int64_t>({batch, longest})));
  TENON_RETURN_IF_ERROR(sparse.CheckSorted());
  std::vector<Labels> labels(batch);
  for (int64_t i = 0; i < sparse.size(); ++i) {
    labels[sparse.index(i)[0]].push_back(values.data<int32_t>()[i]);
  }
  return labels;
}

Status CtcLossKernel(KernelContext& ctx, const Tensor& inputs, const LossAttrs& attrs) {
  const int64_t time = inputs.dim(0), batch = inputs.dim(1), classes = inputs.dim(2);
  if (batch == 0) return InvalidArgument("batch_size must not be 0");
  if (classes < 1) return InvalidArgument("inputs must have at least one class");
  TENON_ASSIGN_OR_RETURN(const DimVector lengths, ReadIntegers(ctx.input(3), "sequence_length"));
  TENON_ASSIGN_OR_RETURN(std::vector<Labels> labels, ReadLabels(ctx.input(1), ctx.input(2), batch));
  std::vector<Labels> paths(batch);
  for (int64_t b = 0; b < batch; ++b) {
    if (lengths[b] < 0 || lengths[b] > time) {
      return NotInRange(lengths[b], time + 1, "sequence_length[", b, "]");
    }
    TENON_ASSIGN_OR_RETURN(paths[b], WithBlanks(labels[b], attrs, classes - 1, lengths[b], b));
  }
  TENON_ASSIGN_OR_RETURN(Tensor * loss, ctx.CreateOutput(0, {batch}));
  TENON_ASSIGN_OR_RETURN(Tensor * gradient, ctx.AllocateOutput(1, inputs.shape()));
  ZeroElements(loss);
  ZeroElements(gradient);
  return DispatchStatus(inputs.dtype(), TypeList<float, double>(), [&]<typename T>(T) {
    const double cost = 100.0 * static_cast<double>(time) * static_cast<double>(classes);
    ParallelFor(batch, cost, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const bool longer = static_cast<int64_t>(labels[b].size()) > lengths[b];
        if (lengths[b] == 0 || (attrs.ignore_longer && longer)) continue;
        Path<T> path(paths[b], lengths[b], classes, attrs.merge);
        path.Softmax(inputs.data<T>() + b * classes, batch * classes);
        const T log_p = path.LogProbability();
        loss->data<T>()[b] = -log_p;
        path.Gradient(log_p, gradient->data<T>() + b * classes, batch * classes);
      }
    });
  });
}

/// The second output is the gradient of the first.
void CtcLossGrad(GradContext& g) {
  const Output known = PreventGradient(
      g.out(1), {.message = "Currently there is no way to take the second derivative of ctc_loss"});
  g.dx(0) = ExpandDims(g.dy(0), -1) * known;
}

}  // namespace

void RegisterCtcLoss(OpRegistry& ops) {
  ops.Add("CTCLoss", CtcLossKernel)
      .Grad(CtcLossGrad)
      .Example({Shape{4, 2, 3}, Tensor::Of<int64_t>({3, 2}, {0, 0, 0, 1, 1, 0}),
                Tensor::Vector<int32_t>({0, 1, 1}), Tensor::Vector<int32_t>({4, 3})},
               {{"T", DType::kFloat}});
}

}  // namespace tenon
