// SPDX-License-Identifier: Apache-2.0
#include "tools/run/file_rows.h"

#include <algorithm>

#include "data/csv/csv_rows.h"
#include "data/records/record_rows.h"
#include "train/input/image_files.h"

namespace tenon::tools {
namespace {

bool EndsWithOne(std::string_view text, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view ending) { return text.ends_with(ending); });
}

/// The first column of batches, whose number of rows only their end tells.
class ColumnRows final : public RowSource {
 public:
  explicit ColumnRows(BatchSourcePtr from)
      : none_((*from->schema())[0].dtype, Shape({0})),
        rows_(RebatchRows(std::move(from), INT64_MAX, /*drop_remainder=*/false)) {}
  int64_t num_rows() const override { return -1; }
  StatusOr<Tensor> Next(int64_t most) override {
    RowBatch batch;
    TENON_ASSIGN_OR_RETURN(const bool found, rows_->Next(most, &batch));
    return found ? batch.columns[0] : none_;
  }

 private:
  const Tensor none_;
  const BatchSourcePtr rows_;
};

class OneRow final : public RowSource {
 public:
  explicit OneRow(Tensor row) : row_(std::move(row)) {}
  int64_t num_rows() const override { return 1; }
  StatusOr<Tensor> Next(int64_t) override {
    Tensor next = row_;
    row_ = row_.Slice(row_.dim(0), row_.dim(0));
    return next;
  }

 private:
  Tensor row_;  // one, or none
};

/// The dtype that a column is read as before it is converted to `dtype`.
DType CsvTypeFor(DType dtype) {
  switch (dtype) {
    case DType::kString:
    case DType::kBool:
    case DType::kDouble:
    case DType::kInt64:
    case DType::kInt32:
      return dtype;
    default:
      return IsInteger(dtype) ? DType::kInt64 : DType::kFloat;
  }
}

StatusOr<std::unique_ptr<RowSource>> OpenImage(const std::string& path, DType dtype,
                                               const PartialShape& shape) {
  if (dtype == DType::kString) {
    return InvalidArgument("'", path, "' is an image, wanted a string; its bytes are @", path);
  }
  const int64_t last = shape.rank_known() && shape.rank() > 0 ? shape.dim(shape.rank() - 1) : -1;
  TENON_ASSIGN_OR_RETURN(const Tensor image, ReadImage(path, last == 1 || last == 3 ? last : 0));
  DimVector dims = {1};
  for (const int64_t dim : image.shape().dims()) dims.push_back(dim);
  TENON_ASSIGN_OR_RETURN(Tensor row, image.Reshaped(Shape(dims)));
  return std::make_unique<OneRow>(std::move(row));
}

}  // namespace

std::optional<std::pair<std::string, std::string>> SplitCsvColumn(std::string_view value) {
  for (const std::string_view ending : {".csv:", ".csv.gz:"}) {
    const size_t at = value.find(ending);
    if (at == std::string_view::npos) continue;
    const size_t colon = at + ending.size() - 1;
    return std::pair(std::string(value.substr(0, colon)), std::string(value.substr(colon + 1)));
  }
  return std::nullopt;
}

bool IsImageFile(std::string_view value) { return EndsWithOne(value, {".png", ".jpg", ".jpeg"}); }

bool IsRecordFile(std::string_view value) {
  return EndsWithOne(value, {".tfrecord", ".tfrecords"});
}

StatusOr<std::unique_ptr<RowSource>> OpenFileRows(const std::string& value, DType dtype,
                                                  const PartialShape& shape) {
  if (const auto column = SplitCsvColumn(value)) {
    TENON_ASSIGN_OR_RETURN(BatchSourcePtr rows,
                           ReadCsv({column->first}, {{column->second, CsvTypeFor(dtype)}}));
    return std::make_unique<ColumnRows>(std::move(rows));
  }
  if (IsImageFile(value)) return OpenImage(value, dtype, shape);
  if (!IsRecordFile(value)) return nullptr;
  if (dtype != DType::kString) {
    return InvalidArgument("'", value, "' holds records, which are strings; wanted ",
                           ToString(dtype));
  }
  return std::make_unique<ColumnRows>(ReadRecords({value}));
}

}  // namespace tenon::tools
