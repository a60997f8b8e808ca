// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/memory/counted_memory.h"
#include "core/op/kernel.h"
#include "core/op/shape_inference.h"

// What the ops that parse Example and SequenceExample messages have in common: features by name,
// each of which becomes one sparse, dense or ragged tensor of the values in all messages.

namespace tenon {

enum class ColumnForm { kSparse, kDense, kRagged };

/// One feature that is asked for.
struct Column {
  std::string key;
  ColumnForm form = ColumnForm::kSparse;
  DType type = DType::kInvalid;
  // The rest is for dense ones.
  PartialShape shape = {};
  /// Elements of a row; of one of variable length those of a step of its first dimension.
  int64_t elements = 1;
  bool variable = false;
  /// A tensor of the feature's shape, or one element to pad with; without elements none may lack.
  Tensor missing = {};
  /// A message without it has an empty list of steps.
  bool may_lack = false;
};

/// Fills `elements` and `variable` from `shape`, in which only the first dimension may be unknown,
/// and that only if `variable_allowed`, and checks what stands for missing ones; `what` names it.
Status FinishDense(Column* column, bool variable_allowed, std::string_view what);

/// The messages that are parsed, and what their features are.
struct ParsedMessages {
  absl::Span<const TString> messages;
  absl::Span<const TString> names;  // one per message for error messages, or none
  uint64_t field;                   // of the message, in which the features are
  bool batch;                       // results have a dimension for messages
  bool steps;                       // each feature is a list of features, another dimension
  /// Whether dense lists of sequences give their numbers of steps too, and a single message,
  /// instead of the splits of messages, the number of what it has: a scalar.
  bool lengths = false;
};

/// Parses the columns and makes them outputs from number `*output` on, which goes past them:
///   sparse: all indices, all values, all shapes;   dense: all values, then lengths of lists
///   ragged: all values, all splits of messages (of lists only those; then those of their steps)
/// InvalidArgument naming message and feature for bytes that are no such message, values of
/// another type, and dense features that are missing or have another number of values.
Status ParseColumns(KernelContext& ctx, const ParsedMessages& from,
                    absl::Span<const Column> columns, int* output);

/// For shape functions: the shapes of these outputs, of `batch` messages (none: no such dimension).
Status SetColumnShapes(ShapeContext& c, const std::optional<int64_t>& batch, bool steps,
                       bool lengths, int sparse, absl::Span<const PartialShape> dense, int ragged,
                       int* output);

}  // namespace tenon
