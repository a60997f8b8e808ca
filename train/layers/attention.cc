// SPDX-License-Identifier: Apache-2.0
#include "train/layers/attention.h"

#include <cmath>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/linalg/linalg_ops.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/nn/nn_ops.h"
#include "train/layers/dropout.h"

namespace tenon {
namespace {

/// What a score is lowered by where the mask is false; a softmax makes 0 of it.
constexpr double kMasked = -1e9;

Output SoftmaxOf(const Output& scores, const Output& mask) {
  if (!mask.exists()) return Softmax(scores);
  return Softmax(scores + (1 - Cast(mask, scores.dtype())) * kMasked);
}

Output DroppedWeights(const Output& weights, double rate, const Input& training, int64_t seed) {
  return Dropout(weights, rate, {.training = training, .seed = seed});
}

Output WithBias(const Output& x, const Variable& bias) {
  return bias.ref().exists() ? x + bias : x;
}

}  // namespace

AttentionResult ScaledDotProductAttention(const Input& query, const Input& key, const Input& value,
                                          const AttentionOptions& options) {
  const CalledFrom caller(options.location);
  const NameScope scope(UnusedScope("attention"));
  const Output q = Const(query);
  const auto depth = static_cast<double>(KnownSize(q, -1, "an attention"));
  if (!CurrentBuilding().graph->error().ok()) return {};
  const Output scores = BatchMatMulV2(q * (1 / std::sqrt(depth)), key, {.adj_y = true});
  const Output weights = SoftmaxOf(scores, options.mask);
  const Output seen = DroppedWeights(weights, options.dropout, options.training, options.seed);
  return {BatchMatMulV2(seen, value), weights};
}

MultiHeadAttention::MultiHeadAttention(int64_t num_heads, int64_t key_dim,
                                       const MultiHeadAttentionOptions& options)
    : num_heads_(num_heads),
      key_dim_(key_dim),
      options_(options),
      state_(std::make_shared<State>(options.name)) {
  if (options_.value_dim == 0) options_.value_dim = key_dim;
}

MultiHeadAttention::Projection MultiHeadAttention::Make(std::string_view name,
                                                        const std::vector<int64_t>& kernel,
                                                        const std::vector<int64_t>& bias,
                                                        DType dtype) const {
  const NameScope scope(name);
  Projection made;
  made.kernel =
      MakeWeight("kernel", kernel, dtype,
                 {options_.kernel_initializer, options_.kernel_regularizer, options_.trainable});
  if (options_.use_bias) {
    made.bias =
        MakeWeight("bias", bias, dtype,
                   {options_.bias_initializer, options_.bias_regularizer, options_.trainable});
  }
  return made;
}

AttentionResult MultiHeadAttention::operator()(const Input& query, const Input& key,
                                               const Input& value,
                                               const MultiHeadAttentionCallOptions& options) const {
  const InLayer layer(*state_, query.location());
  const BuildContext& context = CurrentBuilding();
  const Output q = Const(query), k = Const(key), v = Const(value);
  for (const Output& x : {q, k, v}) {
    if (!CheckRank(x, 3, "a multi-head attention")) return {};
  }
  if (layer.is_first()) {
    const auto columns = [](const Output& x) { return KnownSize(x, 2, "a multi-head attention"); };
    const int64_t value_dim = options_.value_dim;
    const int64_t output_dim = options_.output_dim > 0 ? options_.output_dim : columns(q);
    const auto heads = [&](std::string_view name, const Output& x, int64_t size) {
      return Make(name, {columns(x), num_heads_, size}, {num_heads_, size}, q.dtype());
    };
    state_->query = heads("query", q, key_dim_);
    state_->key = heads("key", k, key_dim_);
    state_->value = heads("value", v, value_dim);
    state_->output =
        Make("attention_output", {num_heads_, value_dim, output_dim}, {output_dim}, q.dtype());
  }
  if (!context.graph->error().ok()) return {};
  const auto project = [](const Output& x, const Projection& by) {
    return WithBias(Einsum({x, by.kernel}, "btc,chd->bthd"), by.bias);
  };
  const double scale = 1 / std::sqrt(static_cast<double>(key_dim_));
  const Output scores =
      Einsum({project(q, state_->query) * scale, project(k, state_->key)}, "bqhd,bkhd->bhqk");
  // One mask for all heads.
  const Output mask = options.mask.shape().rank() == 3 ? ExpandDims(options.mask, 1) : options.mask;
  const Output weights = SoftmaxOf(scores, mask);
  const Output seen = DroppedWeights(weights, options_.dropout, options.training, options_.seed);
  const Output mixed = Einsum({seen, project(v, state_->value)}, "bhqk,bkhd->bqhd");
  return {WithBias(Einsum({mixed, state_->output.kernel}, "bqhd,hdo->bqo"), state_->output.bias),
          weights};
}

AdditiveAttention::AdditiveAttention(const AdditiveAttentionOptions& options)
    : options_(options), state_(std::make_shared<State>(options.name)) {}

AttentionResult AdditiveAttention::operator()(const Input& query, const Input& key,
                                              const Input& value,
                                              const MultiHeadAttentionCallOptions& options) const {
  const InLayer layer(*state_, query.location());
  const Output q = Const(query), k = Const(key), v = Const(value);
  for (const Output& x : {q, k, v}) {
    if (!CheckRank(x, 3, "an additive attention")) return {};
  }
  if (layer.is_first() && options_.use_scale) {
    state_->scale = MakeWeight("scale", {KnownSize(k, 2, "an additive attention")}, q.dtype(),
                               {options_.scale_initializer, {}, options_.trainable});
  }
  if (!CurrentBuilding().graph->error().ok()) return {};
  Output both = Tanh(ExpandDims(q, 2) + ExpandDims(k, 1));
  if (options_.use_scale) both = both * state_->scale;
  const Output weights = SoftmaxOf(Sum(both, {-1}), options.mask);
  const Output seen = DroppedWeights(weights, options_.dropout, options.training, options_.seed);
  return {BatchMatMulV2(seen, v), weights};
}

}  // namespace tenon
