// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "train/layers/layer.h"

// Tables of vectors, whole or in parts on several devices, and what is looked up in them. Only rows
// that are looked up are read and have gradients: of the ref() of a table that is only looked up,
// SparseGradients (core/gradient/gradients.h) gives rows and never the whole.

namespace tenon {

struct PartitionedVariableOptions {
  DType dtype = DType::kFloat;
  /// Glorot's uniform one by default; told the shape of the whole. With a seed of its own each part
  /// draws the same values, as in TensorFlow.
  Initializer initializer = {};
  Regularizer regularizer = {};
  bool trainable = true;
  std::source_location location = std::source_location::current();
};

/// A variable in parts of consecutive rows, <name>/part_0, <name>/part_1, ..., the first of which
/// have a row more where they cannot have equally many (tf.get_variable with
/// tf.fixed_size_partitioner). A checkpoint holds the whole, under its name. Where a device
/// function spreads variables, such as ReplicaDeviceSetter, it spreads the parts. Small; copy it
/// freely.
///
///   PartitionedVariable table("embeddings", {1000000, 64}, 4);
///   Output rows = EmbeddingLookup(table, ids);
class PartitionedVariable {
 public:
  /// `shape` is the whole's; a number of parts below 1 or above that of rows is a mistake.
  PartitionedVariable(std::string_view name, const std::vector<int64_t>& shape, int partitions,
                      const PartitionedVariableOptions& options = {});
  /// A variable of one part.
  PartitionedVariable(const Variable& whole) : parts_{whole} {}  // NOLINT

  /// None after a mistake.
  const std::vector<Variable>& parts() const { return parts_; }

 private:
  std::vector<Variable> parts_;
};

/// Which part has row i of a table in n parts.
enum class PartitionStrategy {
  /// Part i % n, as its row i / n: neighbours are apart. The whole in a checkpoint, which has part
  /// after part, has the rows in another order.
  kMod,
  /// Consecutive rows, as the parts of a PartitionedVariable are of the whole.
  kDiv,
};

struct EmbeddingLookupOptions {
  PartitionStrategy partition_strategy = PartitionStrategy::kMod;
  /// Rows with a larger l2 norm are looked up scaled down to it; 0: as they are.
  double max_norm = 0;
  std::string name = "embedding_lookup";
  std::source_location location = std::source_location::current();
};

/// The rows of `params` that `ids` name (tf.nn.embedding_lookup): int32 or int64 of any shape;
/// gives the shape of ids, followed by that of a row. What is gathered from a part is gathered
/// where the part is. An id beyond the rows is an error of the step.
Output EmbeddingLookup(const PartitionedVariable& params, const Input& ids,
                       const EmbeddingLookupOptions& options = {});

/// A sparse matrix of ids, as the ops for sparse tensors and examples give it.
struct SparseIds {
  Output indices;  // int64 [n, 2 or more], sorted: row first
  Output values;   // int32 or int64 [n]
  /// int64 [2 or more], for SafeEmbeddingLookupSparse, which takes matrices only.
  Output dense_shape = {};
};

/// How the vectors of one row of ids become one; w is 1 without weights.
enum class Combiner {
  kSum,    // sum(w v)
  kMean,   // sum(w v) / sum(w)
  kSqrtn,  // sum(w v) / sqrt(sum(w^2))
};

struct EmbeddingLookupSparseOptions {
  Combiner combiner = Combiner::kMean;
  /// One for each id, a floating point vector [n]; without a node all are 1.
  Output weights = {};
  PartitionStrategy partition_strategy = PartitionStrategy::kMod;
  double max_norm = 0;  // as EmbeddingLookupOptions has it
  std::string name = "embedding_lookup_sparse";
  std::source_location location = std::source_location::current();
};

/// For each row of ids the sum, or mean, of the rows of `params` that they name
/// (tf.nn.embedding_lookup_sparse): [rows, ...], zeros for a row without ids; rows after the last
/// that has ids are missing. Each row of params is gathered once, however often it is named.
Output EmbeddingLookupSparse(const PartitionedVariable& params, const SparseIds& ids,
                             const EmbeddingLookupSparseOptions& options = {});

struct SafeEmbeddingLookupSparseOptions {
  Combiner combiner = Combiner::kMean;
  Output weights = {};
  /// The id that a row without ids has; below 0: none, and zeros for such a row.
  int64_t default_id = -1;
  PartitionStrategy partition_strategy = PartitionStrategy::kDiv;
  double max_norm = 0;  // as EmbeddingLookupOptions has it
  std::string name = "safe_embedding_lookup_sparse";
  std::source_location location = std::source_location::current();
};

/// The same for every row of ids, `dense_shape`[0] of them, where ids below 0 are left out, and
/// those with weights of 0 and below too unless the combiner is the sum
/// (tf.nn.safe_embedding_lookup_sparse of matrices).
Output SafeEmbeddingLookupSparse(const PartitionedVariable& params, const SparseIds& ids,
                                 const SafeEmbeddingLookupSparseOptions& options = {});

struct EmbeddingOptions {
  DType dtype = DType::kFloat;
  /// How many parts the table has; of one part it is <name>/embeddings.
  int partitions = 1;
  PartitionStrategy partition_strategy = PartitionStrategy::kDiv;
  double max_norm = 0;  // as EmbeddingLookupOptions has it
  Initializer embeddings_initializer = RandomUniformInitializer(-0.05, 0.05);
  Regularizer embeddings_regularizer = {};
  bool trainable = true;
  std::string name = "embedding";
};

/// A vector for each number below `input_dim` (tf.keras.layers.Embedding). The first call makes
/// <name>/embeddings [input_dim, output_dim], or <name>/embeddings/part_0, ...
///
///   Output words = Embedding(10000, 64)(ids);   // ids [batch, length]: [batch, length, 64]
class Embedding {
 public:
  Embedding(int64_t input_dim, int64_t output_dim, const EmbeddingOptions& options = {});

  /// ids: int32 or int64 of any shape; gives [ids.shape, output_dim].
  Output operator()(const Input& ids) const;

  /// None before the first call.
  const std::optional<PartitionedVariable>& embeddings() const { return state_->embeddings; }

 private:
  struct State : LayerState {
    using LayerState::LayerState;
    std::optional<PartitionedVariable> embeddings;
  };

  int64_t input_dim_, output_dim_;
  EmbeddingOptions options_;
  std::shared_ptr<State> state_;
};

}  // namespace tenon
