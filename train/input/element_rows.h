// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/base/status.h"
#include "data/batch/batch_stages.h"
#include "train/input/input_source.h"

namespace tenon {

/// A walk of an input pipeline as its stages take it: rows, in the form that costs least.
struct RowWalk {
  enum class Form {
    kColumns,   // rows as they are
    kNumbers,   // numbers of rows of `tensors`
    kFiles,     // names of files and what goes with them, of which `read` makes elements
    kElements,  // one column of variants, which hold an InputElement each
  };
  Form form = Form::kColumns;
  BatchSourcePtr rows;
  /// Makes an element of each file of a batch, on several threads; only with kFiles.
  std::function<StatusOr<std::vector<InputElement>>(const RowBatch& files)> read;
  std::vector<Tensor> tensors;  // only with kNumbers: in host memory, of as many rows each
};

/// The rows of tensors; InvalidArgument when they do not belong together.
StatusOr<RowWalk> RowsOfTensors(std::vector<Tensor> tensors);

/// The elements of `source`.
RowWalk RowsOfElements(std::unique_ptr<InputSource> source);

/// Each row as an element. Tensors of rows share the memory of what they are rows of.
std::unique_ptr<InputSource> ElementsOfRows(RowWalk walk);

/// Batches of rows (RebatchRows), each an element.
std::unique_ptr<InputSource> BatchesOfRows(RowWalk walk, int64_t size, bool drop_remainder);

}  // namespace tenon
