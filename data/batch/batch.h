// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "core/base/status.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"

// Rows of files and tensors, many at a time, in columns of one type each: what readers give, and
// what the stages of an input pipeline (data/batch/batch_stages.h) take and give.

namespace tenon {

/// The name and the type of a column.
struct ColumnSpec {
  std::string name;
  DType dtype = DType::kInvalid;
  PartialShape row_shape;  // of one row's value
};

using RowSchema = std::vector<ColumnSpec>;

/// Rows that follow one another.
struct RowBatch {
  std::shared_ptr<const RowSchema> schema;
  /// A tensor in host memory for each column of the schema, of one dimension more than a row's
  /// value. Its buffer may be shared: only a sole owner writes.
  std::vector<Tensor> columns;

  int64_t num_rows() const { return columns.empty() ? 0 : columns[0].dim(0); }
  /// Rows [begin, end), which share the memory.
  RowBatch Slice(int64_t begin, int64_t end) const;
};

/// Gives rows from the first to the last. Used by one thread at a time.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// The columns that all batches have.
  virtual const std::shared_ptr<const RowSchema>& schema() const = 0;
  /// Makes `batch` the next rows, at least one and at most `most`; false at the end, and ever
  /// after. Rows before a mistake come before its error. After an error there is nothing more.
  /// REQUIRES: most >= 1.
  virtual StatusOr<bool> Next(int64_t most, RowBatch* batch) = 0;
};

/// Rows `indices` of `from`, in that order. The indices must be inside. ResourceExhausted when
/// memory is out.
StatusOr<Tensor> GatherRows(const Tensor& from, absl::Span<const int64_t> indices);

/// The rows of all tensors, one after the other; of one, the tensor itself, of any rank.
/// InvalidArgument, naming `what`, when dtypes or the shapes of rows differ. REQUIRES: at least one
/// tensor.
StatusOr<Tensor> ConcatenateRows(absl::Span<const Tensor> parts, std::string_view what);

/// Copies row `source_row` of `source` over row `row` of `target`, whose rows are alike. May throw
/// std::bad_alloc at the limit of memory.
void CopyRow(const Tensor& source, int64_t source_row, Tensor* target, int64_t row);
/// The same, but for text and variants, which it takes out of `source`.
void MoveRow(Tensor* source, int64_t source_row, Tensor* target, int64_t row);

}  // namespace tenon
