// SPDX-License-Identifier: Apache-2.0
#include "data/batch/batch_stages.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace tenon {
namespace {

/// How many rows a stage asks for at once that passes few of them on.
constexpr int64_t kMostRows = 4096;
/// No source has so many rows, and no number of a row overflows.
constexpr int64_t kMostShards = INT64_MAX / 2;

/// A stage with the columns of its input.
class StageOver : public BatchSource {
 public:
  explicit StageOver(BatchSourcePtr from) : from_(std::move(from)), schema_(from_->schema()) {}
  const std::shared_ptr<const RowSchema>& schema() const final { return schema_; }

 protected:
  BatchSourcePtr from_;

 private:
  const std::shared_ptr<const RowSchema> schema_;
};

class TakeStage final : public StageOver {
 public:
  TakeStage(BatchSourcePtr from, int64_t count) : StageOver(std::move(from)), left_(count) {}

  StatusOr<bool> Next(int64_t most, RowBatch* batch) override {
    if (left_ == 0) return false;
    TENON_ASSIGN_OR_RETURN(const bool found, from_->Next(std::min(most, left_), batch));
    left_ = found ? left_ - batch->num_rows() : 0;
    return found;
  }

 private:
  int64_t left_;
};

class SkipStage final : public StageOver {
 public:
  SkipStage(BatchSourcePtr from, int64_t count) : StageOver(std::move(from)), left_(count) {}

  StatusOr<bool> Next(int64_t most, RowBatch* batch) override {
    while (left_ > 0) {
      TENON_ASSIGN_OR_RETURN(const bool found, from_->Next(std::min(left_, kMostRows), batch));
      if (!found) return false;
      left_ -= batch->num_rows();
    }
    return from_->Next(most, batch);
  }

 private:
  int64_t left_;
};

class ShardStage final : public StageOver {
 public:
  ShardStage(BatchSourcePtr from, int64_t count, int64_t index)
      : StageOver(std::move(from)), count_(std::min(count, kMostShards)), before_(index) {}

  StatusOr<bool> Next(int64_t most, RowBatch* batch) override {
    const int64_t wanted = std::min(most, std::max<int64_t>(kMostRows / count_, 1));
    std::vector<int64_t> rows;
    while (rows.empty()) {
      RowBatch all;
      const int64_t asked = std::min(before_, kMostRows) + 1 + (wanted - 1) * count_;
      TENON_ASSIGN_OR_RETURN(const bool found, from_->Next(std::min(asked, kMostRows), &all));
      if (!found) return false;
      for (; before_ < all.num_rows(); before_ += count_) rows.push_back(before_);
      before_ -= all.num_rows();
      *batch = {all.schema, {}};
      if (rows.empty()) continue;
      for (const Tensor& column : all.columns) {
        TENON_ASSIGN_OR_RETURN(Tensor chosen, GatherRows(column, rows));
        batch->columns.push_back(std::move(chosen));
      }
    }
    return true;
  }

 private:
  const int64_t count_;
  int64_t before_;  // rows before the next one of the shard
};

class RepeatStage final : public StageOver {
 public:
  using Open = std::function<StatusOr<BatchSourcePtr>(int64_t repetition)>;
  RepeatStage(BatchSourcePtr first, Open open, int64_t count)
      : StageOver(std::move(first)), open_(std::move(open)), count_(count) {}

  StatusOr<bool> Next(int64_t most, RowBatch* batch) override {
    if (count_ == 0) return false;
    while (true) {
      if (from_ == nullptr) {
        if (!any_ || repetition_ + 1 == count_) return false;
        TENON_ASSIGN_OR_RETURN(from_, open_(++repetition_));
        any_ = false;
      }
      TENON_ASSIGN_OR_RETURN(const bool found, from_->Next(most, batch));
      if (found) {
        any_ = true;
        return true;
      }
      from_ = nullptr;
    }
  }

 private:
  const Open open_;
  const int64_t count_;
  int64_t repetition_ = 0;
  bool any_ = false;
};

class RebatchStage final : public StageOver {
 public:
  RebatchStage(BatchSourcePtr from, int64_t size, bool drop_remainder)
      : StageOver(std::move(from)), size_(size), drop_remainder_(drop_remainder) {}

  StatusOr<bool> Next(int64_t most, RowBatch* batch) override {
    const int64_t size = std::min(most, size_);
    std::vector<RowBatch> parts;
    int64_t rows = 0;
    while (rows < size && !ended_) {
      RowBatch part;
      TENON_ASSIGN_OR_RETURN(const bool found, from_->Next(size - rows, &part));
      ended_ = !found;
      if (!found) break;
      rows += part.num_rows();
      parts.push_back(std::move(part));
    }
    if (rows == 0 || (drop_remainder_ && rows < size)) return false;
    if (parts.size() == 1) {
      *batch = std::move(parts[0]);
      return true;
    }
    *batch = {parts[0].schema, {}};
    std::vector<Tensor> pieces(parts.size());
    for (size_t c = 0; c < parts[0].columns.size(); ++c) {
      for (size_t i = 0; i < parts.size(); ++i) pieces[i] = std::move(parts[i].columns[c]);
      TENON_ASSIGN_OR_RETURN(Tensor column,
                             ConcatenateRows(pieces, StrCat("column ", c, " of a batch")));
      batch->columns.push_back(std::move(column));
    }
    return true;
  }

 private:
  const int64_t size_;
  const bool drop_remainder_;
  bool ended_ = false;
};

class NumberSource final : public BatchSource {
 public:
  explicit NumberSource(int64_t count)
      : schema_(
            std::make_shared<RowSchema>(RowSchema{{"row", DType::kInt64, PartialShape(Shape())}})),
        count_(count) {}
  const std::shared_ptr<const RowSchema>& schema() const override { return schema_; }

  StatusOr<bool> Next(int64_t most, RowBatch* batch) override {
    const int64_t rows = std::min({most, count_ - next_, kMostRows});
    if (rows == 0) return false;
    TENON_ASSIGN_OR_RETURN(Tensor numbers, Tensor::Allocate(CpuAllocator(), DType::kInt64, {rows}));
    std::iota(numbers.data<int64_t>(), numbers.data<int64_t>() + rows, next_);
    next_ += rows;
    *batch = {schema_, {std::move(numbers)}};
    return true;
  }

 private:
  const std::shared_ptr<const RowSchema> schema_;
  const int64_t count_;
  int64_t next_ = 0;
};

}  // namespace

BatchSourcePtr NumberRows(int64_t count) { return std::make_unique<NumberSource>(count); }

BatchSourcePtr TakeRows(BatchSourcePtr from, int64_t count) {
  return std::make_unique<TakeStage>(std::move(from), count);
}

BatchSourcePtr SkipRows(BatchSourcePtr from, int64_t count) {
  return std::make_unique<SkipStage>(std::move(from), count);
}

BatchSourcePtr ShardRows(BatchSourcePtr from, int64_t count, int64_t index) {
  return std::make_unique<ShardStage>(std::move(from), count, index);
}

BatchSourcePtr RepeatRows(BatchSourcePtr first, RepeatStage::Open open, int64_t count) {
  return std::make_unique<RepeatStage>(std::move(first), std::move(open), count);
}

BatchSourcePtr RebatchRows(BatchSourcePtr from, int64_t size, bool drop_remainder) {
  return std::make_unique<RebatchStage>(std::move(from), size, drop_remainder);
}

}  // namespace tenon
