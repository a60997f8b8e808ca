// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/base/hash_map.h"
#include "core/memory/counted_memory.h"
#include "core/op/kernel.h"

namespace tenon {

/// How the weights are regularised.
struct Shrinkage {
  /// InvalidArgument when l2 is not positive.
  static StatusOr<Shrinkage> Create(float l1, float l2);

  /// `weight` with l1 / l2 taken off its size.
  double operator()(double weight) const;

  double l2 = 1, by = 0;
};

/// The features of a batch of examples and the weights of a linear model. The weights stay; what a
/// step changes is added up in deltas beside them. Used by one thread at a time.
class LinearModel {
 public:
  struct Counts {
    int64_t sparse = 0, sparse_with_values = 0, dense = 0;  // groups of features
  };

  /// Reads the inputs of an SdcaOptimizer and makes its outputs for the deltas, of zeros.
  /// InvalidArgument for inputs that do not fit together.
  static StatusOr<LinearModel> Create(KernelContext& ctx, const Counts& counts);

  int64_t num_examples() const { return static_cast<int64_t>(squared_norms_.size()); }
  double label(int64_t i) const { return labels_.data<float>()[i]; }
  double weight(int64_t i) const { return weights_.data<float>()[i]; }
  /// The sum of the squares of the example's features.
  double squared_norm(int64_t i) const { return squared_norms_[i]; }

  /// What the shrunken weights predict for example `i`: as they were, and with `partitions` times
  /// the deltas.
  struct Predictions {
    double before = 0, now = 0;
  };
  Predictions Predict(int64_t i, const Shrinkage& shrink, double partitions) const;
  /// Adds `factor` times the example's features to the deltas.
  void Add(int64_t i, double factor);

 private:
  /// Some of a group's entries are of each example.
  struct SparseGroup {
    CountedVector<int64_t> first;   // entry of each example, and one behind the last
    CountedVector<int64_t> places;  // of the entries' features among the weights
    Tensor values;                  // invalid: all 1
    Tensor weights;
    float* deltas = nullptr;
  };
  struct DenseGroup {
    Tensor features, weights;
    float* deltas = nullptr;
  };

  static StatusOr<SparseGroup> ReadSparse(int64_t examples, const Tensor& example_indices,
                                          const Tensor& feature_indices, const Tensor& values,
                                          const Tensor& indices, const Tensor& weights);
  /// Calls `fn(group's weights, its deltas, place, value)` for each feature of the example.
  template <typename Fn>
  void ForEachFeature(int64_t i, Fn fn) const;

  std::vector<SparseGroup> sparse_;
  std::vector<DenseGroup> dense_;
  Tensor labels_, weights_;
  CountedVector<double> squared_norms_;
};

}  // namespace tenon
