// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace tenon::tools {

/// How the values of several steps belong together.
enum class RowsAre {
  kOne,      // there is but one: values are as they are
  kRepeats,  // a row for each step
  kBatches,  // of rows: a value with a row for each row of the batch adds them, another one a row
};

/// Makes rows of the values of steps, and sees that they belong together. Used by one thread at a
/// time.
class RowMaker {
 public:
  /// `is_whole` says of a fetch that it has all its rows in each step, so that they are none of the
  /// batch's, be they as many.
  RowMaker(RowsAre steps, std::vector<std::string> labels, std::vector<bool> is_whole)
      : steps_(steps),
        labels_(std::move(labels)),
        is_whole_(std::move(is_whole)),
        follows_(labels_.size()),
        row_shapes_(labels_.size()) {}

  /// What a step adds to each of the fetches; `batch` is how many rows it had. With one step, its
  /// values. InvalidArgument, naming the fetch, for rows of another shape than before, and for a
  /// value that has other rows than the batch though it had them before.
  StatusOr<std::vector<Tensor>> RowsOf(const std::vector<Tensor>& values, int64_t batch);

 private:
  StatusOr<Tensor> RowsOf(size_t i, const Tensor& value, int64_t batch);

  const RowsAre steps_;
  const std::vector<std::string> labels_;
  const std::vector<bool> is_whole_;
  std::vector<bool> follows_;  // the rows of the batch
  std::vector<Shape> row_shapes_;
  bool first_ = true;
};

}  // namespace tenon::tools
