// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "train/layers/layer.h"

namespace tenon {

struct AttentionOptions {
  /// bool, broadcast to the scores [..., queries, keys]: where it is false, a query does not see
  /// the key. By default all see all.
  Output mask = {};
  /// Part of the weights that dropout leaves out, and whether it does.
  double dropout = 0;
  Input training = false;
  int64_t seed = 0;
  std::source_location location = std::source_location::current();
};

/// What attention gives.
struct AttentionResult {
  Output output;
  /// [..., queries, keys]: how much of each value is in each output, before dropout.
  Output weights;
};

/// softmax(query * key^T / sqrt(depth)) * value (Vaswani et al. 2017). query [..., queries, depth],
/// key [..., keys, depth] and value [..., keys, columns] are floating point, of the same leading
/// dimensions; gives [..., queries, columns]. The depth must be known.
AttentionResult ScaledDotProductAttention(const Input& query, const Input& key, const Input& value,
                                          const AttentionOptions& options = {});

struct MultiHeadAttentionOptions {
  /// Columns of each head's values; by default key_dim.
  int64_t value_dim = 0;
  /// Columns of the output; by default those of the query.
  int64_t output_dim = 0;
  double dropout = 0;
  bool use_bias = true;
  Initializer kernel_initializer = {};
  Initializer bias_initializer = ZerosInitializer();
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  bool trainable = true;
  int64_t seed = 0;
  std::string name = "multi_head_attention";
};

struct MultiHeadAttentionCallOptions {
  /// The mask, like AttentionOptions': bool, [batch, queries, keys], or broadcast to the scores
  /// [batch, heads, queries, keys] when of rank 4.
  Output mask = {};
  Input training = false;
};

/// Several attentions beside each other, each of projections of its own, whose outputs are
/// projected together (tf.keras.layers.MultiHeadAttention; Vaswani et al. 2017). Variables, of the
/// dtype of the first call's query: <name>/query, key, value, each with kernel [columns, heads,
/// key_dim or value_dim] and bias [heads, ...]; <name>/attention_output/kernel [heads, value_dim,
/// output_dim] and bias.
///
///   MultiHeadAttention attention(8, 64);
///   Output h = attention(x, x, x).output;        // of itself
///   Output y = attention(x, memory, memory).output;
class MultiHeadAttention {
 public:
  MultiHeadAttention(int64_t num_heads, int64_t key_dim,
                     const MultiHeadAttentionOptions& options = {});

  /// query [batch, queries, columns], key and value [batch, keys, columns], the columns known; the
  /// output is [batch, queries, output_dim], the weights [batch, heads, queries, keys].
  AttentionResult operator()(const Input& query, const Input& key, const Input& value,
                             const MultiHeadAttentionCallOptions& options = {}) const;

 private:
  struct Projection {
    Variable kernel, bias;
  };
  struct State : LayerState {
    using LayerState::LayerState;
    Projection query, key, value, output;
  };

  Projection Make(std::string_view name, const std::vector<int64_t>& kernel,
                  const std::vector<int64_t>& bias, DType dtype) const;

  int64_t num_heads_, key_dim_;
  MultiHeadAttentionOptions options_;
  std::shared_ptr<State> state_;
};

struct AdditiveAttentionOptions {
  /// Whether the columns have weights of their own, <name>/scale [columns].
  bool use_scale = true;
  /// The initializer of the scale; Glorot's uniform one by default.
  Initializer scale_initializer = {};
  double dropout = 0;
  bool trainable = true;
  int64_t seed = 0;
  std::string name = "additive_attention";
};

/// softmax(sum(scale * tanh(query + key))) * value (tf.keras.layers.AdditiveAttention; Bahdanau et
/// al. 2015, whose projections of query and key are Dense layers before it, without bias).
/// Variable: <name>/scale [columns].
///
///   AdditiveAttention attention;
///   Output context = attention(Dense(64)(decoder), Dense(64)(encoder), encoder).output;
class AdditiveAttention {
 public:
  explicit AdditiveAttention(const AdditiveAttentionOptions& options = {});

  /// query [batch, queries, columns], key [batch, keys, columns], value [batch, keys, any]; the
  /// columns known.
  AttentionResult operator()(const Input& query, const Input& key, const Input& value,
                             const MultiHeadAttentionCallOptions& options = {}) const;

 private:
  struct State : LayerState {
    using LayerState::LayerState;
    Variable scale;
  };

  AdditiveAttentionOptions options_;
  std::shared_ptr<State> state_;
};

}  // namespace tenon
