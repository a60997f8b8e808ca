// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deque>
#include <map>

#include "core/base/interruption.h"
#include "core/base/parallel.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/maths.h"
#include "ops/sequences/log_sum.h"

namespace tenon {
namespace {

using Sequence = std::vector<int64_t>;

/// The inputs [time, batch, classes] and sequence lengths of a decoder.
StatusOr<DimVector> CheckDecoderInputs(const KernelContext& ctx) {
  const Tensor& inputs = ctx.input(0);
  if (inputs.num_elements() == 0) return InvalidArgument("inputs must not be empty");
  TENON_ASSIGN_OR_RETURN(DimVector lengths, ReadIntegerVector(ctx.input(1), "sequence_length"));
  if (static_cast<int64_t>(lengths.size()) != inputs.dim(1)) {
    return FailedPrecondition("len(sequence_length) != batch_size: ", lengths.size(), " vs. ",
                              inputs.dim(1));
  }
  for (size_t b = 0; b < lengths.size(); ++b) {
    if (lengths[b] <= inputs.dim(0)) continue;
    return FailedPrecondition("sequence_length(", b, ") must be at most ", inputs.dim(0),
                              ", found ", lengths[b]);
  }
  return lengths;
}

/// Sets the sparse matrices of the paths: output p has the indices of path p, output paths + p its
/// values and output 2 * paths + p its shape. sequences[p][b] is what batch entry b became.
Status SetDecoded(KernelContext& ctx, const std::vector<std::vector<Sequence>>& sequences) {
  const int paths = static_cast<int>(sequences.size());
  for (int p = 0; p < paths; ++p) {
    const std::vector<Sequence>& rows = sequences[p];
    int64_t n = 0, longest = 0;
    for (const Sequence& row : rows) {
      n += static_cast<int64_t>(row.size());
      longest = std::max(longest, static_cast<int64_t>(row.size()));
    }
    TENON_ASSIGN_OR_RETURN(Tensor * indices, ctx.CreateOutput(p, {n, 2}));
    TENON_ASSIGN_OR_RETURN(Tensor * values, ctx.CreateOutput(paths + p, {n}));
    int64_t *place = indices->data<int64_t>(), *value = values->data<int64_t>();
    for (size_t b = 0; b < rows.size(); ++b) {
      for (size_t i = 0; i < rows[b].size(); ++i) {
        *place++ = static_cast<int64_t>(b);
        *place++ = static_cast<int64_t>(i);
        *value++ = rows[b][i];
      }
    }
    ctx.set_output(2 * paths + p,
                   Tensor::Vector<int64_t>({static_cast<int64_t>(rows.size()), longest}));
  }
  return OkStatus();
}

Status GreedyKernel(KernelContext& ctx, bool merge_repeated, int64_t blank_index) {
  TENON_ASSIGN_OR_RETURN(const DimVector lengths, CheckDecoderInputs(ctx));
  const Tensor& inputs = ctx.input(0);
  const int64_t batch = inputs.dim(1), classes = inputs.dim(2);
  const int64_t blank = blank_index < 0 ? blank_index + classes : blank_index;
  if (blank < 0 || blank >= classes) {
    return InvalidArgument("blank_index expected to be between ", -classes, " and ", classes - 1,
                           " but was ", blank_index);
  }
  TENON_ASSIGN_OR_RETURN(Tensor * scores, ctx.CreateOutput(3, {batch, 1}));
  std::vector<Sequence> rows(batch);
  TENON_RETURN_IF_ERROR(
      DispatchStatus(inputs.dtype(), TypeList<float, double>(), [&]<typename T>(T) {
        const double cost = static_cast<double>(inputs.dim(0)) * static_cast<double>(classes);
        ParallelFor(batch, cost, [&](int64_t begin, int64_t end) {
          for (int64_t b = begin; b < end; ++b) {
            T score = 0;
            int64_t before = -1;
            for (int64_t t = 0; t < lengths[b]; ++t) {
              const T* const logits = inputs.data<T>() + (t * batch + b) * classes;
              int64_t best = 0;
              for (int64_t k = 1; k < classes; ++k) {
                if (logits[k] > logits[best]) best = k;
              }
              score -= logits[best];
              if (best != blank && !(merge_repeated && best == before)) rows[b].push_back(best);
              before = best;
            }
            scores->data<T>()[b] = score;
          }
        });
      }));
  return SetDecoded(ctx, {rows});
}

/// The most probable label sequences of one batch entry, `width` of them after each step, as nodes
/// of a tree of their prefixes (Graves, Jaitly: "Towards end-to-end speech recognition with
/// recurrent neural networks", 2014).
template <typename T>
class Beam {
 public:
  Beam(int64_t width, int64_t classes) : width_(width), classes_(classes) {
    Node& root = nodes_.emplace_back();
    root.now = {0, 0, LogZero<T>()};
    leaves_.push_back(&root);
  }

  void Step(const T* logits) {
    const T highest = *std::max_element(logits, logits + classes_);
    T sum = 0;
    for (int64_t k = 0; k < classes_; ++k) sum += std::exp(logits[k] - highest);
    const T norm = highest + std::log(sum);
    std::sort(leaves_.begin(), leaves_.end(), IsBetter);
    const std::vector<Node*> branches = leaves_;
    for (Node* b : branches) b->before = b->now;
    for (Node* b : branches) {
      if (b->parent != nullptr) {
        if (b->parent->IsActive()) {
          const Score& prefix = b->parent->before;
          const T previous = b->label == b->parent->label ? prefix.blank : prefix.total;
          b->now.label = LogSum(b->now.label, previous);
        }
        b->now.label += logits[b->label] - norm;
      }
      b->now.blank = b->before.total + logits[classes_ - 1] - norm;
      b->now.total = LogSum(b->now.blank, b->now.label);
    }
    std::make_heap(leaves_.begin(), leaves_.end(), IsBetter);  // the worst is the first
    for (Node* b : branches) {
      if (!IsCandidate(b->before.total)) continue;
      for (int64_t k = 0; k < classes_ - 1; ++k) Grow(b, k, logits[k] - norm);
    }
  }

  /// The sequences of the `n` best and the logarithms of their probabilities.
  Status Best(int64_t n, bool merge, std::vector<Sequence>* sequences, std::vector<T>* scores) {
    if (n > width_) return InvalidArgument("requested more paths than the beam width.");
    if (n > static_cast<int64_t>(leaves_.size())) {
      return InvalidArgument("Less leaves in the beam search than requested.");
    }
    std::sort(leaves_.begin(), leaves_.end(), IsBetter);
    for (int64_t i = 0; i < n; ++i) {
      Sequence labels;
      int64_t before = -1;
      for (const Node* node = leaves_[i]; node->parent != nullptr; node = node->parent) {
        if (!merge || node->label != before) labels.push_back(node->label);
        before = node->label;
      }
      std::reverse(labels.begin(), labels.end());
      sequences->push_back(std::move(labels));
      scores->push_back(leaves_[i]->now.total);
    }
    return OkStatus();
  }

 private:
  /// Logarithms of probabilities: ending with a blank, with the label, either.
  struct Score {
    T total = LogZero<T>(), blank = LogZero<T>(), label = LogZero<T>();
  };
  struct Node {
    bool IsActive() const { return now.total != LogZero<T>(); }
    Node* parent = nullptr;
    int64_t label = -1;
    std::map<int64_t, Node*> children;
    Score before, now;
  };

  static bool IsBetter(const Node* a, const Node* b) { return a->now.total > b->now.total; }
  bool IsFull() const { return static_cast<int64_t>(leaves_.size()) >= width_; }
  bool IsCandidate(T total) const {
    return total > LogZero<T>() && (!IsFull() || total > leaves_.front()->now.total);
  }

  /// Adds b with label k behind it to the leaves, if it is good enough.
  void Grow(Node* b, int64_t k, T log_y) {
    const auto found = b->children.find(k);
    if (found != b->children.end() && found->second->IsActive()) return;
    const T total = log_y + (k == b->label ? b->before.blank : b->before.total);
    if (!IsCandidate(total)) return;
    Node* child = found != b->children.end() ? found->second : &nodes_.emplace_back();
    child->parent = b;
    child->label = k;
    child->now = {total, LogZero<T>(), total};
    b->children[k] = child;
    if (IsFull()) {
      std::pop_heap(leaves_.begin(), leaves_.end(), IsBetter);
      leaves_.back()->now = Score();
      leaves_.pop_back();
    }
    leaves_.push_back(child);
    std::push_heap(leaves_.begin(), leaves_.end(), IsBetter);
  }

  const int64_t width_, classes_;
  std::deque<Node, CountedAllocator<Node>> nodes_;
  std::vector<Node*> leaves_;
};

Status BeamKernel(KernelContext& ctx, int64_t beam_width, int64_t top_paths, bool merge_repeated) {
  TENON_ASSIGN_OR_RETURN(const DimVector lengths, CheckDecoderInputs(ctx));
  const Tensor& inputs = ctx.input(0);
  const int64_t batch = inputs.dim(1), classes = inputs.dim(2);
  TENON_ASSIGN_OR_RETURN(Tensor * scores,
                         ctx.CreateOutput(static_cast<int>(3 * top_paths), {batch, top_paths}));
  std::vector<std::vector<Sequence>> sequences(top_paths);
  TENON_RETURN_IF_ERROR(
      DispatchStatus(inputs.dtype(), TypeList<float, double>(), [&]<typename T>(T) -> Status {
        for (int64_t b = 0; b < batch; ++b) {
          Beam<T> beam(beam_width, classes);
          for (int64_t t = 0; t < lengths[b] && !Interrupted(); ++t) {
            beam.Step(inputs.data<T>() + (t * batch + b) * classes);
          }
          std::vector<Sequence> best;
          std::vector<T> log_probabilities;
          TENON_RETURN_IF_ERROR(beam.Best(top_paths, merge_repeated, &best, &log_probabilities));
          for (int64_t p = 0; p < top_paths; ++p) {
            sequences[p].push_back(std::move(best[p]));
            scores->data<T>()[b * top_paths + p] = log_probabilities[p];
          }
        }
        return OkStatus();
      }));
  return SetDecoded(ctx, sequences);
}

}  // namespace

void RegisterCtcDecoders(OpRegistry& ops) {
  const std::vector<ExampleInput> example = {Shape{4, 2, 3}, Tensor::Vector<int32_t>({4, 2})};
  ops.Add("CTCGreedyDecoder", GreedyKernel, {.attrs = {"merge_repeated", "blank_index"}})
      .Example(example);
  ops.Add("CTCBeamSearchDecoder", BeamKernel,
          {.attrs = {"beam_width", "top_paths", "merge_repeated"}})
      .Example(example, {{"beam_width", 4}, {"top_paths", 2}});
}

}  // namespace tenon
