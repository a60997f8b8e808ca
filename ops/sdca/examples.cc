// SPDX-License-Identifier: Apache-2.0
#include "ops/sdca/examples.h"

#include <algorithm>
#include <cmath>

#include "ops/arguments.h"
#include "ops/elements.h"

namespace tenon {

StatusOr<Shrinkage> Shrinkage::Create(float l1, float l2) {
  if (!(l2 > 0)) return InvalidArgument("l2 must be positive, found ", l2);
  return Shrinkage{.l2 = l2, .by = static_cast<double>(l1) / l2};
}

double Shrinkage::operator()(double weight) const {
  return std::copysign(std::max(std::fabs(weight) - by, 0.0), weight);
}

template <typename Fn>
void LinearModel::ForEachFeature(int64_t i, Fn fn) const {
  for (const SparseGroup& g : sparse_) {
    for (int64_t k = g.first[i]; k < g.first[i + 1]; ++k) {
      fn(g.weights.data<float>(), g.deltas, g.places[k],
         g.values.valid() ? static_cast<double>(g.values.data<float>()[k]) : 1.0);
    }
  }
  for (const DenseGroup& g : dense_) {
    const int64_t count = g.features.dim(1);
    const float* const row = g.features.data<float>() + i * count;
    for (int64_t k = 0; k < count; ++k) {
      fn(g.weights.data<float>(), g.deltas, k, static_cast<double>(row[k]));
    }
  }
}

LinearModel::Predictions LinearModel::Predict(int64_t i, const Shrinkage& shrink,
                                              double partitions) const {
  Predictions sums;
  ForEachFeature(i, [&](const float* weights, const float* deltas, int64_t at, double value) {
    const double weight = weights[at];
    sums.before += value * shrink(weight);
    sums.now += value * shrink(weight + partitions * static_cast<double>(deltas[at]));
  });
  return sums;
}

void LinearModel::Add(int64_t i, double factor) {
  ForEachFeature(i, [&](const float*, float* deltas, int64_t at, double value) {
    deltas[at] += static_cast<float>(value * factor);
  });
}

StatusOr<LinearModel::SparseGroup> LinearModel::ReadSparse(
    int64_t examples, const Tensor& example_indices, const Tensor& feature_indices,
    const Tensor& values, const Tensor& indices, const Tensor& weights) {
  const int64_t entries = example_indices.num_elements();
  if (feature_indices.num_elements() != entries ||
      (values.valid() && values.num_elements() != entries)) {
    return InvalidArgument(
        "Found mismatched example_indices, feature_indices and values of shapes ",
        example_indices.shape(), ", ", feature_indices.shape(), " and ",
        values.valid() ? values.shape() : example_indices.shape());
  }
  if (indices.num_elements() != weights.num_elements()) {
    return InvalidArgument("sparse_indices and sparse_weights must have one length, found shapes ",
                           indices.shape(), " and ", weights.shape());
  }
  flat_hash_map<int64_t, int64_t> place_of;
  for (const int64_t index : indices.flat<int64_t>()) {
    place_of.emplace(index, static_cast<int64_t>(place_of.size()));
  }
  if (static_cast<int64_t>(place_of.size()) != indices.num_elements()) {
    return InvalidArgument("sparse_indices has an index twice");
  }
  SparseGroup group{.first = CountedVector<int64_t>(examples + 1),
                    .places = CountedVector<int64_t>(entries),
                    .values = values,
                    .weights = weights};
  int64_t example = 0;
  flat_hash_set<int64_t> seen;
  for (int64_t k = 0; k < entries; ++k) {
    if (k % kStepsBetweenLooks == 0 && Interrupted()) break;
    const int64_t of = example_indices.data<int64_t>()[k];
    if (of < example || of >= examples) {
      return InvalidArgument("sparse_example_indices must go up and be less than ", examples,
                             ", found ", of, " at ", k);
    }
    if (of > example) seen.clear();
    for (; example < of; ++example) group.first[example + 1] = k;
    const int64_t feature = feature_indices.data<int64_t>()[k];
    const auto found = place_of.find(feature);
    if (found == place_of.end()) {
      return InvalidArgument("Found sparse feature indices out of valid range: ", feature);
    }
    if (!seen.insert(feature).second) return InvalidArgument("Duplicate index in sparse vector.");
    group.places[k] = found->second;
  }
  for (; example < examples; ++example) group.first[example + 1] = entries;
  return group;
}

StatusOr<LinearModel> LinearModel::Create(KernelContext& ctx, const Counts& counts) {
  if (counts.sparse + counts.dense == 0) {
    return InvalidArgument("Requires at least one feature to train.");
  }
  if (counts.sparse_with_values > counts.sparse) {
    return InvalidArgument("found values of ", counts.sparse_with_values,
                           " sparse features, wanted ", counts.sparse, " at most");
  }
  int next = 0;
  const auto take = [&](int64_t count) {
    std::vector<Tensor> inputs;
    for (int64_t i = 0; i < count; ++i) inputs.push_back(ctx.input(next++));
    return inputs;
  };
  const std::vector<Tensor> example_indices = take(counts.sparse);
  const std::vector<Tensor> feature_indices = take(counts.sparse);
  const std::vector<Tensor> values = take(counts.sparse_with_values);
  const std::vector<Tensor> features = take(counts.dense);
  LinearModel model;
  model.weights_ = take(1)[0];
  model.labels_ = take(1)[0];
  const std::vector<Tensor> indices = take(counts.sparse);
  const std::vector<Tensor> sparse_weights = take(counts.sparse);
  const std::vector<Tensor> dense_weights = take(counts.dense);
  const int64_t examples = model.weights_.num_elements();
  if (model.labels_.num_elements() != examples) {
    return InvalidArgument("Expected ", examples, " example labels but got ",
                           model.labels_.num_elements());
  }
  int output = 1;
  const auto zeros = [&](const Tensor& like) -> StatusOr<float*> {
    TENON_ASSIGN_OR_RETURN(Tensor * deltas, ctx.AllocateOutput(output++, like.shape()));
    ZeroElements(deltas);
    return deltas->data<float>();
  };
  for (int64_t i = 0; i < counts.sparse; ++i) {
    TENON_ASSIGN_OR_RETURN(SparseGroup group,
                           ReadSparse(examples, example_indices[i], feature_indices[i],
                                      i < counts.sparse_with_values ? values[i] : Tensor(),
                                      indices[i], sparse_weights[i]));
    TENON_ASSIGN_OR_RETURN(group.deltas, zeros(group.weights));
    model.sparse_.push_back(std::move(group));
  }
  for (int64_t i = 0; i < counts.dense; ++i) {
    if (features[i].rank() != 2) {
      return InvalidArgument("Dense features at index ", i, " must be rank 2 but is rank ",
                             features[i].rank());
    }
    if (features[i].shape() != Shape{examples, dense_weights[i].num_elements()}) {
      return InvalidArgument("Dense features at index ", i, " must have shape [", examples, ",",
                             dense_weights[i].num_elements(),
                             "], as there are examples and weights,", " found ",
                             features[i].shape());
    }
    DenseGroup group{.features = features[i], .weights = dense_weights[i]};
    TENON_ASSIGN_OR_RETURN(group.deltas, zeros(group.weights));
    model.dense_.push_back(std::move(group));
  }
  model.squared_norms_.resize(examples);
  for (int64_t i = 0; i < examples && !Interrupted(); ++i) {
    model.ForEachFeature(i, [&](const float*, const float*, int64_t, double value) {
      model.squared_norms_[i] += value * value;
    });
  }
  return model;
}

}  // namespace tenon
