// SPDX-License-Identifier: Apache-2.0
#include "tools/run/row_maker.h"
#include "core/base/plural.h"

#include <algorithm>

namespace tenon::tools {
namespace {

StatusOr<Tensor> AsOneRow(const Tensor& value) {
  DimVector dims = {1};
  dims.insert(dims.end(), value.shape().dims().begin(), value.shape().dims().end());
  TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  return value.Reshaped(shape);
}

}  // namespace

StatusOr<std::vector<Tensor>> RowMaker::RowsOf(const std::vector<Tensor>& values, int64_t batch) {
  if (steps_ == RowsAre::kOne) return values;
  std::vector<Tensor> all;
  for (size_t i = 0; i < values.size(); ++i) {
    TENON_ASSIGN_OR_RETURN(Tensor rows, RowsOf(i, values[i], batch));
    all.push_back(std::move(rows));
  }
  first_ = false;
  return all;
}

StatusOr<Tensor> RowMaker::RowsOf(size_t i, const Tensor& value, int64_t batch) {
  const bool has_as_many = value.rank() > 0 && value.dim(0) == batch;
  if (first_) follows_[i] = steps_ == RowsAre::kBatches && has_as_many && !is_whole_[i];
  if (follows_[i] && !has_as_many) {
    return InvalidArgument("'", labels_[i], "' has the shape ", value.shape(), " for a batch of ",
                           Plural(batch, "row"), "; wanted a row for each of them, as before");
  }
  Tensor rows = value;
  if (!follows_[i]) {
    TENON_ASSIGN_OR_RETURN(rows, AsOneRow(value));
  }
  const Shape row(rows.shape().dims().subspan(1));
  if (first_) row_shapes_[i] = row;
  if (row == row_shapes_[i]) return rows;
  return InvalidArgument("'", labels_[i], "' has the shape ", value.shape(), ", wanted rows of ",
                         row_shapes_[i], " as before");
}

}  // namespace tenon::tools
